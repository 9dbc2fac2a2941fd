package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// HTTPOptions configure an [HTTPHandler]. The zero value suits a listener that only the local
// machine can reach.
type HTTPOptions struct {
	// Streamable are the options of all transports, as far as they apply. Guard replaces their
	// guard for all paths.
	Streamable streamable.Options
	Guard      streamable.Guard
	// Authorize decides whether a request may use the gateway. client is "", or the name in
	// Clients of the only client that the request may use. An error refuses the request with
	// status 401 and its text. For streams and WebSocket connections it is called again every few
	// seconds; they end if the result is another one. Authorize may be called concurrently. nil
	// accepts every request.
	Authorize func(r *http.Request) (client string, err error)
	// Middleware wraps each endpoint.
	Middleware []mcp.Middleware
	// Clients are gateways for single clients, by the name in their path.
	Clients map[string]*Gateway
	// Page serves / and /status.json. nil answers 404 there.
	Page http.Handler
}

// HTTPHandler serves a gateway over HTTP: all upstreams at /mcp, one at /mcp/NAME, clients of 2024
// at /sse, and the gateway of one client at /client/NAME/mcp. A client there that has no other
// principal gets the principal NAME. Clients of WebSocket find the same at /ws, /ws/NAME and
// /client/NAME/ws. It is safe for concurrent use.
type HTTPHandler struct {
	gateway     *Gateway
	opts        HTTPOptions
	interval    time.Duration // see authorizationInterval
	endpoint    *streamable.Server
	sseEndpoint *sse.Server
	wsEndpoint  *websocket.Server

	mu        sync.Mutex
	endpoints map[string]endpoint // by path; of single upstreams and clients; nil after Shutdown
}

// An endpoint serves a gateway at one path.
type endpoint interface {
	http.Handler
	Shutdown(ctx context.Context) error
}

// HTTPHandler returns a handler that serves the gateway over HTTP. nil options mean the defaults.
// Call [HTTPHandler.Shutdown] before the program ends.
func (g *Gateway) HTTPHandler(opts *HTTPOptions) *HTTPHandler {
	var o HTTPOptions
	if opts != nil {
		o = *opts
	}
	o.Streamable.Guard = streamable.Guard{Off: true} // ServeHTTP checks h.opts.Guard
	h := &HTTPHandler{gateway: g, opts: o, interval: authorizationInterval, endpoints: map[string]endpoint{}}
	h.endpoint = streamable.Handler(mcp.Chain(g, o.Middleware...), &o.Streamable)
	h.sseEndpoint = sse.Handler(mcp.Chain(g, o.Middleware...), &o.Streamable)
	h.wsEndpoint = websocket.Handler(mcp.Chain(g, o.Middleware...), webSocketOptions(o.Streamable))
	return h
}

// webSocketOptions returns the options of Streamable HTTP, as far as they apply to WebSocket.
func webSocketOptions(o streamable.Options) *websocket.Options {
	return &websocket.Options{ServerOptions: o.ServerOptions, Guard: o.Guard, Principal: o.Principal, KeepAlive: o.KeepAlive}
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
	client, err := h.opts.Authorize(r)
	if err != nil {
		httpwire.RefuseUnauthorized(w, r, err.Error())
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer h.watchAuthorization(r, client, cancel)()
	if r = r.WithContext(ctx); client != "" {
		h.serveClientToken(w, r, path, client)
	} else {
		h.servePath(w, r, path)
	}
}

// authorizationInterval is the time between two calls of Authorize for one long request. It bounds
// how long a revoked token stays useful. It is a variable for tests.
var authorizationInterval = 5 * time.Second

var errRevoked = errors.New("the token of the request is no longer valid")

// watchAuthorization calls cancel when a request that is being served may no longer use the gateway
// as client. The caller calls stop when the request has been served.
func (h *HTTPHandler) watchAuthorization(r *http.Request, client string, cancel context.CancelCauseFunc) (stop func()) {
	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		if now, err := h.opts.Authorize(r); err != nil || now != client {
			cancel(errRevoked)
			return
		}
		timer.Reset(h.interval)
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(h.interval, check)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
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
		h.serveUpstream(w, r, path, strings.TrimPrefix(path, "/mcp/"))
	case strings.HasPrefix(path, "/ws/"):
		h.serveUpstream(w, r, path, strings.TrimPrefix(path, "/ws/"))
	case strings.HasPrefix(path, "/client/"):
		h.serveClient(w, r, path)
	case h.opts.Page != nil && path == "/status.json":
		h.opts.Page.ServeHTTP(w, r)
	default:
		httpwire.Refuse(w, http.StatusNotFound, "there is nothing here: MCP is at /mcp, one server of it at /mcp/NAME")
	}
}

// serveClientToken serves a request with the token of a single client. The client's gateway is at
// its usual paths, and at /mcp and /ws.
func (h *HTTPHandler) serveClientToken(w http.ResponseWriter, r *http.Request, path, client string) {
	own := "/client/" + client
	switch path {
	case "/mcp", "/ws":
		path = own + path
	case own + "/mcp", own + "/ws":
	default:
		httpwire.Refuse(w, http.StatusForbidden, "the token of the client "+client+" is valid for /mcp, /ws, "+own+"/mcp and "+own+"/ws only")
		return
	}
	h.serveClient(w, r, path)
}

// serveUpstream serves /mcp/NAME and /ws/NAME.
func (h *HTTPHandler) serveUpstream(w http.ResponseWriter, r *http.Request, path, name string) {
	if h.gateway.hub.Upstream(name) == nil {
		httpwire.Refuse(w, http.StatusNotFound, "there is no server of that name")
		return
	}
	h.endpointAt(path, func(*streamable.Options) *Gateway { return h.gateway.Only(name) }).ServeHTTP(w, r)
}

// serveClient serves /client/NAME/mcp and /client/NAME/ws.
func (h *HTTPHandler) serveClient(w http.ResponseWriter, r *http.Request, path string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "/client/"), "/")
	g := h.opts.Clients[name]
	if g == nil || rest != "mcp" && rest != "ws" {
		httpwire.Refuse(w, http.StatusNotFound, "the configuration names no such client: MCP is at /mcp")
		return
	}
	h.endpointAt(path, func(o *streamable.Options) *Gateway {
		who := o.Principal
		if who == nil {
			who = httpwire.PrincipalOr(o.ServerOptions.Principal)
		}
		o.Principal = func(r *http.Request) (p mcp.Principal) {
			p = who(r)
			if p.ID == "" {
				p.ID = name
			}
			return p
		}
		return g
	}).ServeHTTP(w, r)
}

// endpointAt returns the endpoint of a path, and makes it at the first request. newGateway returns
// its gateway, and may change its options. The path tells whether the endpoint takes WebSocket
// connections: /ws/NAME or /client/NAME/ws.
func (h *HTTPHandler) endpointAt(path string, newGateway func(o *streamable.Options) *Gateway) endpoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endpoints == nil {
		return h.endpoint // which refuses requests after Shutdown
	}
	e := h.endpoints[path]
	if e == nil {
		o := h.opts.Streamable
		handler := mcp.Chain(newGateway(&o), h.opts.Middleware...)
		if strings.HasPrefix(path, "/ws/") || strings.HasPrefix(path, "/client/") && strings.HasSuffix(path, "/ws") {
			e = websocket.Handler(handler, webSocketOptions(o))
		} else {
			e = streamable.Handler(handler, &o)
		}
		h.endpoints[path] = e
	}
	return e
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
