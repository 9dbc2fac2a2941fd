package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// HTTPOptions configure a [Front]. The zero value is ready, for a listener that only this machine reaches.
type HTTPOptions struct {
	// Streamable and SSE are the options of the two transports. Their Guard is that of all paths.
	Streamable streamable.Options
	SSE        sse.Options
	Guard      streamable.Guard
	// Token is what clients have to show: Authorization: Bearer TOKEN. Empty: nobody has to.
	Token string
	// Middleware is around every endpoint.
	Middleware []mcp.Middleware
	// Clients are the gateways for single clients, by name.
	Clients map[string]*Gateway
	// Page is served at / and /status.json; nil: nothing is.
	Page http.Handler
}

// HTTPHandler is a gateway over HTTP: all upstreams at /mcp, one of them at /mcp/NAME, for clients of 2024 at /sse, and what is
// offered to one client only at /client/NAME/mcp, where clients that nothing else tells apart count as the principal NAME. It is
// safe for concurrent use.
type HTTPHandler struct {
	gateway     *Gateway
	opts        HTTPOptions
	endpoint    *streamable.Server
	sseEndpoint *sse.Server

	mu        sync.Mutex
	endpoints map[string]*streamable.Server // by path: of single upstreams and of single clients; nil once it is shut down
}

// HTTPHandler returns the gateway over HTTP. Call [Front.Shutdown] before the program ends.
func (g *Gateway) HTTPHandler(opts *HTTPOptions) *HTTPHandler {
	var o HTTPOptions
	if opts != nil {
		o = *opts
	}
	o.Streamable.Guard, o.SSE.Guard = streamable.Guard{Off: true}, streamable.Guard{Off: true} // it is asked here
	f := &HTTPHandler{gateway: g, opts: o, endpoints: map[string]*streamable.Server{}}
	f.endpoint = streamable.Handler(mcp.Chain(g, o.Middleware...), &o.Streamable)
	f.sseEndpoint = sse.Handler(mcp.Chain(g, o.Middleware...), &o.SSE)
	return f
}

// ServeHTTP implements [http.Handler].
func (f *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	open := path == "" && f.opts.Page != nil // the page itself holds nothing: it asks for the token
	if !f.opts.Guard.Check(w, r) || !open && !f.checkToken(w, r) {
		return
	}
	switch {
	case path == "/mcp":
		f.endpoint.ServeHTTP(w, r)
	case path == "/sse":
		f.sseEndpoint.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/mcp/"):
		f.serveUpstream(w, r, path)
	case strings.HasPrefix(path, "/client/"):
		f.serveClient(w, r, path)
	case f.opts.Page != nil && (path == "" || path == "/status.json"):
		f.opts.Page.ServeHTTP(w, r)
	default:
		httpwire.Refuse(w, http.StatusNotFound, "there is nothing here: MCP is at /mcp, one server of it at /mcp/NAME")
	}
}

// checkToken reports whether the request shows the token, and answers one that does not.
func (f *HTTPHandler) checkToken(w http.ResponseWriter, r *http.Request) bool {
	if f.opts.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(f.opts.Token)) == 1 {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="dowel"`)
	httpwire.Refuse(w, http.StatusUnauthorized, "the request must carry the gateway's token: Authorization: Bearer …")
	return false
}

// serveUpstream serves one upstream.
func (f *HTTPHandler) serveUpstream(w http.ResponseWriter, r *http.Request, path string) {
	name := strings.TrimPrefix(path, "/mcp/")
	if f.gateway.hub.Upstream(name) == nil {
		httpwire.Refuse(w, http.StatusNotFound, "there is no server of that name")
		return
	}
	f.endpointAt(path, func(*streamable.Options) *Gateway { return f.gateway.Only(name) }).ServeHTTP(w, r)
}

// serveClient serves what is offered to one client.
func (f *HTTPHandler) serveClient(w http.ResponseWriter, r *http.Request, path string) {
	name, known := strings.CutSuffix(strings.TrimPrefix(path, "/client/"), "/mcp")
	g := f.opts.Clients[name]
	if g == nil || !known {
		httpwire.Refuse(w, http.StatusNotFound, "the configuration names no such client: MCP is at /mcp")
		return
	}
	f.endpointAt(path, func(o *streamable.Options) *Gateway {
		who := o.Principal
		o.Principal = func(r *http.Request) (p mcp.Principal) {
			if who != nil {
				p = who(r)
			}
			if p.ID == "" {
				p.ID = name
			}
			return p
		}
		return g
	}).ServeHTTP(w, r)
}

// endpointAt returns the endpoint at a path, which is made once: of returns the gateway behind it, and may change the options.
func (f *HTTPHandler) endpointAt(path string, of func(o *streamable.Options) *Gateway) *streamable.Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.endpoints[path]
	if f.endpoints == nil {
		return f.endpoint // which refuses
	}
	if s == nil {
		o := f.opts.Streamable
		s = streamable.Handler(mcp.Chain(of(&o), f.opts.Middleware...), &o)
		f.endpoints[path] = s
	}
	return s
}

// Shutdown refuses new work, and waits for calls in flight as [streamable.Server.Shutdown] does.
func (f *HTTPHandler) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	ends := []func(context.Context) error{f.endpoint.Shutdown, f.sseEndpoint.Shutdown}
	for _, s := range f.endpoints {
		ends = append(ends, s.Shutdown)
	}
	f.endpoints = nil
	f.mu.Unlock()
	failed := make([]error, len(ends))
	var wg sync.WaitGroup
	for i, end := range ends {
		wg.Go(func() { failed[i] = end(ctx) })
	}
	wg.Wait()
	return errors.Join(failed...)
}
