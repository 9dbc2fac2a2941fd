package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// HTTPOptions configure an [HTTPHandler]. The zero value suits a listener that only the local
// machine can reach.
type HTTPOptions struct {
	// Streamable are the options of all transports, as far as they apply. Guard replaces their guard
	// for all paths.
	Streamable streamable.Options
	Guard      streamable.Guard
	// Authorize decides whether a request may use the gateway. client is "", or the name in Clients
	// of the only client that the request may use. An error refuses the request with status 401 and
	// its text. Authorize may be called concurrently. nil accepts every request.
	Authorize func(r *http.Request) (client string, err error)
	// Middleware wraps each endpoint.
	Middleware []mcp.Middleware
	// Clients are gateways for single clients, by the name in their path.
	Clients map[string]*Gateway
	// Page serves / and /status.json. nil answers 404 there.
	Page http.Handler
}

// HTTPHandler serves a gateway over HTTP: all upstreams at /mcp, one at /mcp/NAME, clients of 2024
// at /sse, clients of WebSocket at /ws, and the gateway of one client at /client/NAME/mcp. A client there that has no other
// principal gets the principal NAME. It is safe for concurrent use.
type HTTPHandler struct {
	gateway     *Gateway
	opts        HTTPOptions
	endpoint    *streamable.Server
	sseEndpoint *sse.Server
	wsEndpoint  *websocket.Server

	mu        sync.Mutex
	endpoints map[string]*streamable.Server // by path; of single upstreams and clients; nil after Shutdown
}

// HTTPHandler returns a handler that serves the gateway over HTTP. nil options mean the defaults.
// Call [HTTPHandler.Shutdown] before the program ends.
func (g *Gateway) HTTPHandler(opts *HTTPOptions) *HTTPHandler {
	var o HTTPOptions
	if opts != nil {
		o = *opts
	}
	o.Streamable.Guard = streamable.Guard{Off: true} // ServeHTTP checks h.opts.Guard
	h := &HTTPHandler{gateway: g, opts: o, endpoints: map[string]*streamable.Server{}}
	h.endpoint = streamable.Handler(mcp.Chain(g, o.Middleware...), &o.Streamable)
	h.sseEndpoint = sse.Handler(mcp.Chain(g, o.Middleware...), &o.Streamable)
	h.wsEndpoint = websocket.Handler(mcp.Chain(g, o.Middleware...), &websocket.Options{
		ServerOptions: o.Streamable.ServerOptions, Guard: o.Streamable.Guard, Principal: o.Streamable.Principal, KeepAlive: o.Streamable.KeepAlive,
	})
	return h
}

// ServeHTTP implements [http.Handler].
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.opts.Guard.Check(w, r) {
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "" && h.opts.Page != nil { // the page holds no data, and asks for the token itself
		h.opts.Page.ServeHTTP(w, r)
		return
	}
	if h.opts.Authorize == nil {
		h.servePath(w, r, path)
		return
	}
	switch client, err := h.opts.Authorize(r); {
	case err != nil:
		httpwire.RefuseUnauthorized(w, r, err.Error())
	case client != "":
		h.serveClientToken(w, r, path, client)
	default:
		h.servePath(w, r, path)
	}
}

// servePath serves a request that may use all paths.
func (h *HTTPHandler) servePath(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case path == "/mcp":
		h.endpoint.ServeHTTP(w, r)
	case path == "/sse":
		h.sseEndpoint.ServeHTTP(w, r)
	case path == "/ws":
		h.wsEndpoint.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/mcp/"):
		h.serveUpstream(w, r, path)
	case strings.HasPrefix(path, "/client/"):
		h.serveClient(w, r, path)
	case h.opts.Page != nil && path == "/status.json":
		h.opts.Page.ServeHTTP(w, r)
	default:
		httpwire.Refuse(w, http.StatusNotFound, "there is nothing here: MCP is at /mcp, one server of it at /mcp/NAME")
	}
}

// serveClientToken serves a request with the token of a single client. The client's gateway is at
// its usual path and at /mcp.
func (h *HTTPHandler) serveClientToken(w http.ResponseWriter, r *http.Request, path, client string) {
	own := "/client/" + client + "/mcp"
	if path != "/mcp" && path != own {
		httpwire.Refuse(w, http.StatusForbidden, "the token of the client "+client+" is valid for /mcp and "+own+" only")
		return
	}
	h.serveClient(w, r, own)
}

// serveUpstream serves /mcp/NAME.
func (h *HTTPHandler) serveUpstream(w http.ResponseWriter, r *http.Request, path string) {
	name := strings.TrimPrefix(path, "/mcp/")
	if h.gateway.hub.Upstream(name) == nil {
		httpwire.Refuse(w, http.StatusNotFound, "there is no server of that name")
		return
	}
	h.endpointAt(path, func(*streamable.Options) *Gateway { return h.gateway.Only(name) }).ServeHTTP(w, r)
}

// serveClient serves /client/NAME/mcp.
func (h *HTTPHandler) serveClient(w http.ResponseWriter, r *http.Request, path string) {
	name, known := strings.CutSuffix(strings.TrimPrefix(path, "/client/"), "/mcp")
	g := h.opts.Clients[name]
	if g == nil || !known {
		httpwire.Refuse(w, http.StatusNotFound, "the configuration names no such client: MCP is at /mcp")
		return
	}
	h.endpointAt(path, func(o *streamable.Options) *Gateway {
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

// endpointAt returns the endpoint of a path, and makes it at the first request. newGateway returns
// its gateway, and may change its options.
func (h *HTTPHandler) endpointAt(path string, newGateway func(o *streamable.Options) *Gateway) *streamable.Server {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.endpoints[path]
	if h.endpoints == nil {
		return h.endpoint // which refuses requests after Shutdown
	}
	if s == nil {
		o := h.opts.Streamable
		s = streamable.Handler(mcp.Chain(newGateway(&o), h.opts.Middleware...), &o)
		h.endpoints[path] = s
	}
	return s
}

// Shutdown refuses new work and waits for calls in flight, like [streamable.Server.Shutdown].
func (h *HTTPHandler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	ends := []func(context.Context) error{h.endpoint.Shutdown, h.sseEndpoint.Shutdown, h.wsEndpoint.Shutdown}
	for _, s := range h.endpoints {
		ends = append(ends, s.Shutdown)
	}
	h.endpoints = nil
	h.mu.Unlock()
	failed := make([]error, len(ends))
	var wg sync.WaitGroup
	for i, end := range ends {
		wg.Go(func() { failed[i] = end(ctx) })
	}
	wg.Wait()
	return errors.Join(failed...)
}
