package sse

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Server is an [http.Handler] for both endpoints of the transport: a GET opens a stream, a POST
// sends a message to the session of one. It is safe for concurrent use.
type Server struct {
	handler  mcp.Handler
	scopes   httpwire.ScopeChecker
	opts     streamable.Options
	bodies   *httpwire.BodyReader
	sessions httpwire.Registry[*session]
	peers    peers
}

// Handler returns an endpoint that serves h. Mount it at any one path, by convention "/sse".
// Clients are told to POST to the address of their GET, by a reference relative to its last path
// segment, so http.StripPrefix or a proxy may change the path before that. Call [Server.Shutdown]
// before http.Server.Shutdown, which waits for streams.
//
// The options may be shared with the [streamable.Handler] beside it. nil means the defaults;
// Handler does not keep the pointer. Some fields mean less here:
//
//   - Only revisions with a handshake are served; others in Revisions are ignored.
//   - A session belongs to the principal that opened its stream: messages of others are refused.
//   - A session counts as a stream of the Quota.
//   - Of Sessions, only Idle and Keys apply. Idle ends a session if its client has sent nothing for
//     this time and no call is in flight; 0 disables it, because keep-alives detect a client that
//     has disconnected, and most clients of this transport do not reconnect. A stream without any
//     message ends after one minute in any case.
//   - The keys of a cluster make the endpoint one of several replicas: it passes a message to the
//     replica with the stream of its session. That message may have the size that the cluster
//     carries. Other keys are not used: the ids of sessions are not sealed.
//   - JSONFor does not apply.
func Handler(h mcp.Handler, opts *streamable.Options) *Server {
	if opts == nil {
		opts = new(streamable.Options)
	}
	s := &Server{handler: h, scopes: httpwire.NewScopeChecker(h), opts: withDefaults(*opts)}
	s.bodies = httpwire.NewBodyReader(s.opts.MaxBody, s.opts.BodyTimeout, s.opts.Quota)
	s.joinReplicas()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.opts.Guard.Check(w, r) {
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.serveGET(w, r)
	case http.MethodPost:
		s.servePOST(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		httpwire.Refuse(w, http.StatusMethodNotAllowed, "GET opens a stream, POST sends a message")
	}
}

// serveGET opens a session and serves it until it ends.
func (s *Server) serveGET(w http.ResponseWriter, r *http.Request) {
	principal := s.opts.Principal(r)
	client := httpwire.ClientOf(r, principal)
	if err := s.opts.Quota.OpenStream(client); err != nil {
		httpwire.RefuseLimit(w, jsonrpc.ID{}, err)
		return
	}
	defer s.opts.Quota.CloseStream(client)
	ss := newSession(s, w, principal, client)
	if err := s.sessions.Add(ss.id, ss); err != nil {
		httpwire.RefuseBusy(w, jsonrpc.ID{}, err.Error(), retryAfter)
		return
	}
	defer s.sessions.Remove(ss.id)
	defer context.AfterFunc(r.Context(), func() { ss.hangUp(errClientGone) })()
	ss.serveStream(context.WithoutCancel(r.Context()), endpointReference(r, ss.id))
}

// Shutdown refuses further streams and requests with status 503, waits up to DrainTimeout for the
// calls in flight and their questions, and ends the streams. If ctx ends first, Shutdown cuts off
// the streams and returns the cause of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.peers.leave != nil {
		defer s.peers.leave() // after the answers that calls in flight wait for
	}
	return s.sessions.Shutdown(ctx, func(ss *session) { ss.cancel(httpwire.ErrShutdown) }, func(ss *session) { ss.hangUp(httpwire.ErrShutdown) })
}

// retryAfter is the advice to a client that is refused.
const retryAfter = 5 * time.Second

// sessionParameter is the query parameter of a POST that names the session.
const sessionParameter = "sessionId"

// endpointReference returns where the client of r sends its messages: the last path segment of the
// address that it has requested, before http.StripPrefix changed it. The query keeps its
// parameters.
func endpointReference(r *http.Request, id string) string {
	path := r.URL.EscapedPath()
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = asked.EscapedPath()
	}
	segment := path[strings.LastIndexByte(path, '/')+1:]
	if strings.Contains(segment, ":") {
		segment = "./" + segment // otherwise the part before the colon would be a scheme
	}
	query := ""
	for _, pair := range strings.Split(r.URL.RawQuery, "&") {
		if key, _, _ := strings.Cut(pair, "="); pair != "" && key != sessionParameter {
			query += pair + "&"
		}
	}
	return segment + "?" + query + sessionParameter + "=" + id
}
