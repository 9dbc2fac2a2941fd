package websocket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Server is an [http.Handler] that accepts WebSocket connections and serves each of them until it
// ends. It is safe for concurrent use.
type Server struct {
	handler     mcp.Handler
	opts        Options
	connections httpwire.Registry[*serverConn]
}

// Handler returns an endpoint that serves h. It may be mounted at any path, by convention "/ws".
// nil options mean the defaults; Handler does not keep the pointer. Call [Server.Shutdown] before
// the program ends.
func Handler(h mcp.Handler, opts *Options) *Server {
	s := &Server{handler: mcp.Chain(h, httpwire.EnforceScopes)}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.setDefaults()
	return s
}

// ServeHTTP implements [http.Handler]. It returns when the connection has ended. If the context of
// the request ends, so does the connection, after calls in flight as in [Server.Shutdown].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.opts.Guard.Check(w, r) || !checkUpgrade(w, r) {
		return
	}
	principal := s.opts.Principal(r)
	client := httpwire.ClientOf(r, principal)
	if err := s.opts.Quota.OpenStream(client); err != nil {
		httpwire.RefuseLimit(w, jsonrpc.ID{}, err)
		return
	}
	defer s.opts.Quota.CloseStream(client)
	c := s.newConnection(r, principal, client)
	defer c.abortNow()
	defer c.cancel(nil)
	if err := s.connections.Add(c.id, c); err != nil {
		const retryAfter = 5 * time.Second
		httpwire.RefuseBusy(w, jsonrpc.ID{}, err.Error(), retryAfter)
		return
	}
	defer s.connections.Remove(c.id)
	// The guard has checked the Origin.
	socket, err := ws.Accept(w, r, &ws.AcceptOptions{Subprotocols: []string{subprotocol}, InsecureSkipVerify: true})
	if err != nil {
		s.opts.Logger.Warn("a WebSocket connection was not opened", "err", err)
		return
	}
	c.serve(socket)
}

// checkUpgrade reports whether a request asks for a WebSocket connection with the subprotocol of
// MCP. Otherwise it has answered the request.
func checkUpgrade(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		httpwire.Refuse(w, http.StatusMethodNotAllowed, "GET opens a WebSocket connection")
	case !hasToken(r.Header, "Connection", "upgrade") || !hasToken(r.Header, "Upgrade", "websocket"):
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		httpwire.Refuse(w, http.StatusUpgradeRequired, fmt.Sprintf("this address takes WebSocket connections with the subprotocol %q", subprotocol))
	case !hasToken(r.Header, "Sec-Websocket-Protocol", subprotocol):
		httpwire.Refuse(w, http.StatusBadRequest, fmt.Sprintf("the client must offer the WebSocket subprotocol %q: send Sec-WebSocket-Protocol: %s", subprotocol, subprotocol))
	default:
		return true
	}
	return false
}

// hasToken reports whether a header field with a comma-separated list contains a token, in upper or
// lower case.
func hasToken(h http.Header, field, token string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(h[field], ","), ","), func(part string) bool {
		return strings.EqualFold(strings.TrimSpace(part), token)
	})
}

// Shutdown refuses further connections with status 503, ends subscriptions, waits up to
// DrainTimeout for the calls in flight, and closes the connections with status 1001. If ctx ends
// first, Shutdown cuts them off and returns the cause of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.connections.Shutdown(ctx, func(c *serverConn) { c.cancel(httpwire.ErrShutdown) }, func(c *serverConn) { c.abortNow() })
}

// errSilent ends a connection without a first message.
var errSilent = errors.New("the client has sent no message")

// firstMessageTimeout bounds how long a client may hold a connection open before its first message.
// It is a variable for tests.
var firstMessageTimeout = time.Minute

// serverConn is a connection of a [Server], a [transport.Conn].
type serverConn struct {
	*conn
	server    *Server
	id        string // of the session, for handlers that tell legacy clients apart by it
	principal mcp.Principal
	client    quota.Client
	header    http.Header // of its requests
	ctx       context.Context
	cancel    context.CancelCauseFunc // ends the connection gracefully
	abort     context.Context         // ends when the connection must end at once
	abortNow  context.CancelFunc      // ends abort

	firstTimer *time.Timer // ends the connection if the first message does not arrive in time
}

func (s *Server) newConnection(r *http.Request, p mcp.Principal, client quota.Client) *serverConn {
	c := &serverConn{server: s, id: rand.Text(), principal: p, client: client}
	c.header = requestHeader(r.Header, c.id)
	c.ctx, c.cancel = context.WithCancelCause(quota.WithClient(r.Context(), client))
	c.abort, c.abortNow = context.WithCancel(context.Background())
	return c
}

// requestHeader returns the header that all messages of a connection have in common: the session id
// and the fields h of the HTTP request that opened the connection. It drops the fields Mcp-*, which
// describe a single message.
func requestHeader(h http.Header, sessionID string) http.Header {
	fields := http.Header{}
	for name, values := range h {
		if !strings.HasPrefix(name, "Mcp-") {
			fields[name] = values
		}
	}
	fields[mcpwire.HeaderSessionID] = []string{sessionID}
	return fields
}

// serve serves the connection until it ends.
func (c *serverConn) serve(socket *ws.Conn) {
	opts := c.server.opts
	c.conn = newConn(socket, peerClient, opts.MaxMessage, c.closeStatus)
	c.unread = quota.Account{Quota: opts.Quota, Client: c.client}.NewLease(c)
	defer c.unread.Release()
	defer context.AfterFunc(c.abort, func() { c.fail("%w", httpwire.ErrShutdown) })()
	c.startKeepAlive(opts.KeepAlive)
	c.firstTimer = time.AfterFunc(firstMessageTimeout, func() { c.cancel(errSilent) })
	defer c.firstTimer.Stop()
	shared := opts.ServerOptions
	shared.Principal = c.principal
	err := overconn.Serve(c.ctx, c, c.server.handler, shared)
	if err != nil && c.ctx.Err() == nil {
		opts.Logger.Warn("a WebSocket connection failed", "err", err)
	}
}

// closeStatus returns the status and the reason of the close frame to the client.
func (c *serverConn) closeStatus() ws.CloseError {
	switch cause := context.Cause(c.ctx); {
	case cause == nil:
		return ws.CloseError{Code: ws.StatusNormalClosure}
	case errors.Is(cause, errSilent):
		return ws.CloseError{Code: ws.StatusPolicyViolation, Reason: errSilent.Error()}
	}
	return ws.CloseError{Code: ws.StatusGoingAway, Reason: httpwire.ErrShutdown.Error()}
}

// Read implements [transport.Conn].
func (c *serverConn) Read() ([]byte, error) {
	frame, err := c.conn.Read()
	c.firstTimer.Stop()
	return frame, err
}

// Header implements [transport.HeaderConn].
func (c *serverConn) Header() map[string][]string { return c.header }

// CutOff implements [quota.Waiter].
func (c *serverConn) CutOff(reason error) { c.fail("%w", reason) }

var (
	_ transport.HeaderConn = (*serverConn)(nil)
	_ quota.Waiter         = (*serverConn)(nil)
)
