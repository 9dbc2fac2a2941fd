// Package streamable carries MCP over Streamable HTTP (page basic/transports of the specification,
// revisions 2025-03-26 to 2026-07-28). [Handler] makes an [http.Handler] that serves clients of
// every revision at one address, and [URL] is such an address for a client to dial:
//
//	endpoint := streamable.Handler(server, nil)
//	http.Handle("/mcp", endpoint)
//	defer endpoint.Shutdown(ctx) // before http.Server.Shutdown, which waits for open streams
//
//	c, err := client.Dial(ctx, streamable.URL{URL: "https://example.com/mcp"}, nil)
//
// A modern request is served by the goroutine of its POST. It is answered by one JSON document or,
// from the first notification on, by an event stream.
//
// A legacy client opens a session. The session id contains the sealed state of the session, so
// every replica with the same keys can serve it. A call of a session runs on a worker, because it
// continues when its connection is lost: its answer stream keeps the events that were sent, and the
// client reads the rest with a GET. Everything outside of calls goes over the session stream, which
// the client opens with a GET too.
package streamable

import (
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
)

// Defaults of [Options] and [SessionOptions].
const (
	defaultMaxBody     = 4 << 20 // bytes
	defaultBodyTimeout = 30 * time.Second
	defaultJSONFor     = time.Second
	defaultSessionIdle = 30 * time.Minute
	defaultSessionLife = 24 * time.Hour
	defaultRetry       = time.Second
)

// Options configure a [Server]. The zero value is ready to use.
type Options struct {
	// ServerOptions are the options that all transports share. MaxConcurrent bounds the requests
	// that one legacy session has in flight.
	transport.ServerOptions
	// Guard decides which hosts and web pages may reach the server.
	Guard Guard
	// Principal returns the user whom a handler or proxy in front of the Server has verified for
	// this request. It may be called concurrently. nil means the user whom package auth/resource
	// has verified, and ServerOptions.Principal without it.
	Principal func(*http.Request) mcp.Principal

	// MaxBody is the largest request body in bytes, 4 MiB if it is 0. A larger one is answered with
	// status 413.
	MaxBody int64
	// BodyTimeout bounds how long the body of a request may take to arrive, 30 s if it is 0.
	BodyTimeout time.Duration
	// JSONFor is how long a response without notifications may remain one JSON document, 1 s if it
	// is 0. A call that takes longer is answered by an event stream, because proxies close
	// connections that are silent for long. Only a document can set the HTTP status of an error. If
	// JSONFor is negative, only notifications make a response a stream.
	JSONFor time.Duration
	// StreamAtOnce answers every request whose client accepts a stream by an event stream, and
	// sends its header before the request is served. JSONFor has no effect then, and errors of the
	// handler have status 200. The answer to initialize remains a document, because its header
	// contains the session id.
	StreamAtOnce bool
	// KeepAlive is the idle time after which an event stream sends a comment, 15 s if it is 0. A
	// negative value disables it.
	KeepAlive time.Duration

	// Sessions configure the sessions of legacy clients.
	Sessions SessionOptions
}

// SessionOptions configure the sessions of clients of revisions before 2026-07-28. The zero value
// is ready to use.
type SessionOptions struct {
	// Disabled refuses legacy clients.
	Disabled bool
	// Keys seal session ids. Replicas behind one address must have the same keys. nil means the
	// keys of the handler if it has a method Keys, as a server.Server has, and random keys
	// otherwise.
	Keys *mcp.Keys
	// Idle ends a session after this time without a request or an open stream, 30 min if it is 0. A
	// negative value keeps idle sessions for Life.
	Idle time.Duration
	// Life bounds the life of a session, 24 h if it is 0.
	Life time.Duration
	// Store keeps the changeable state of sessions. Replicas that share a store agree on the log
	// level, the subscriptions and the end of a session. Each request reads the session's entry.
	// nil means the memory of this process.
	Store SessionStore
	// Events keeps the events that were sent, for clients that reconnect. nil means up to 16 MiB of
	// the memory of this process. Beyond that the oldest events of the client with the most are
	// dropped, and each event is dropped after ten minutes. These bytes count for the client
	// ([transport.Limits].Bytes), and are dropped where messages that wait need the room.
	Events EventStore
	// Retry is how long clients are told to wait before they reconnect to a stream, 1 s if it is 0.
	Retry time.Duration
}

// setDefaults replaces zero values. h is the handler that the server serves.
func (o *Options) setDefaults(h mcp.Handler) {
	setDefault(&o.MaxBody, defaultMaxBody)
	setDefault(&o.BodyTimeout, defaultBodyTimeout)
	setDefault(&o.JSONFor, defaultJSONFor)
	if o.Principal == nil {
		o.Principal = httpwire.PrincipalOr(o.ServerOptions.Principal)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Quota = quota.Or(o.Quota)
	if o.Sessions.Disabled {
		if o.Revisions == nil {
			o.Revisions = mcp.Revisions()
		}
		o.Revisions = slices.DeleteFunc(slices.Clone(o.Revisions), func(r mcp.Revision) bool { return !r.Modern() })
	}
	o.Sessions.setDefaults(h, o.Quota)
}

func (o *SessionOptions) setDefaults(h mcp.Handler, q *transport.Quota) {
	setDefault(&o.Idle, defaultSessionIdle)
	setDefault(&o.Life, defaultSessionLife)
	if o.Idle < 0 {
		o.Idle = o.Life
	}
	setDefault(&o.Retry, defaultRetry)
	if o.Keys == nil {
		if k, ok := h.(interface{ Keys() *mcp.Keys }); ok {
			o.Keys = k.Keys()
		} else {
			o.Keys = new(mcp.Keys)
		}
	}
	network := replica.Of(o.Keys)
	if shared, ok := network.(SessionStore); ok && o.Store == nil {
		o.Store = shared
	}
	if shared, ok := network.(EventStore); ok && o.Events == nil {
		o.Events = shared
	}
	if o.Store == nil {
		o.Store = memstore.NewSessions()
	}
	if o.Events == nil {
		o.Events = memstore.NewEvents(memstore.EventLimits{Quota: q})
	}
}

func setDefault[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// Server is an MCP endpoint, an [http.Handler] that serves clients of both eras. It is safe for
// concurrent use.
type Server struct {
	opts        Options
	edge        *serving.Edge
	headers     mirroredHeaders
	scopes      httpwire.ScopeChecker
	bodies      *httpwire.BodyReader
	slowAnswers *timeout.Queue // makes slow answers event streams
	sessions    sessionRegistry
	workers     *workerPool
	instance    string        // distinguishes this Server from replicas in the names of streams
	streamCount atomic.Uint64 // numbers the legacy streams, for their names

	replicas      replica.Network // nil without replicas
	leaveReplicas func()
	carrierWait   time.Duration // defaultCarrierWait, except in tests

	requests      sync.WaitGroup // requests in flight; leaves 0 only while mu is held
	mu            sync.Mutex
	shutdownHooks map[*func()]struct{}   // end streams that would otherwise stay open
	modernCalls   map[*response]struct{} // calls of the modern era in flight
	closed        bool                   // Shutdown was called
	answerGrace   time.Duration          // defaultAnswerGrace, except in tests
}

// Handler returns an endpoint that serves h. It may be mounted at any path. nil options mean the
// defaults; Handler does not keep the pointer. Call [Server.Shutdown] before the program ends.
func Handler(h mcp.Handler, opts *Options) *Server {
	s := &Server{
		shutdownHooks: map[*func()]struct{}{}, modernCalls: map[*response]struct{}{},
		workers: newWorkers(), carrierWait: defaultCarrierWait, answerGrace: defaultAnswerGrace,
	}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.setDefaults(h)
	s.bodies = httpwire.NewBodyReader(s.opts.MaxBody, s.opts.BodyTimeout, s.opts.Quota)
	s.slowAnswers = timeout.New(s.opts.JSONFor)
	if s.opts.JSONFor < 0 {
		s.slowAnswers = timeout.New(defaultJSONFor) // applies only to clients that accept no JSON document
	}
	s.edge = serving.NewEdge(h, s.opts.ServerOptions)
	s.instance = s.edge.Instance() + "-"
	s.headers = mirroredHeaders{s.edge.Extensions()}
	s.scopes = httpwire.NewScopeChecker(h)
	s.sessions.initRegistry(s)
	s.joinReplicas()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.opts.Guard.Check(w, r) {
		return
	}
	if !s.beginRequest() {
		s.serveDuringShutdown(w, r)
		return
	}
	defer s.requests.Done()
	switch r.Method {
	case http.MethodPost:
		s.servePOST(w, r)
	case http.MethodGet:
		s.serveGET(w, r)
	case http.MethodDelete:
		s.serveDELETE(w, r)
	default:
		s.refuseMethod(w, "this endpoint accepts only "+s.allowedMethods())
	}
}

// allowedMethods returns the value of the header field Allow.
func (s *Server) allowedMethods() string {
	if s.opts.Sessions.Disabled {
		return "POST"
	}
	return "POST, GET, DELETE"
}

func (s *Server) refuseMethod(w http.ResponseWriter, why string) {
	w.Header().Set("Allow", s.allowedMethods())
	httpwire.Refuse(w, http.StatusMethodNotAllowed, why)
}
