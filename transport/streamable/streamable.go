// Package streamable carries MCP over Streamable HTTP, both halves: [Handler] serves every revision on one endpoint, [URL]
// dials one. (basic/transports, revisions 2025-03-26 to 2026-07-28)
package streamable

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// Defaults of [Options].
const (
	DefaultMaxBody     = 4 << 20 // bytes
	DefaultBodyTimeout = 30 * time.Second
	DefaultJSONFor     = time.Second
	DefaultSessionIdle = 30 * time.Minute
	DefaultSessionLife = 24 * time.Hour
	DefaultMaxSessions = 10_000
	DefaultRetry       = time.Second
)

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// ServerOptions are those of every transport. MaxConcurrent bounds the requests in flight of one legacy session.
	transport.ServerOptions
	// Guard says which hosts and origins may come.
	Guard overhttp.Guard
	// Principal says who asks, as far as something in front of the endpoint has verified it. nil: ServerOptions.Principal.
	Principal func(*http.Request) mcp.Principal

	// MaxBody bounds the body of a request, default [DefaultMaxBody] bytes; a larger one is answered with 413.
	MaxBody int64
	// BodyTimeout bounds how long a body may take to come, default [DefaultBodyTimeout].
	BodyTimeout time.Duration
	// JSONFor is how long a call may take, and send no notification, before its response becomes an event stream rather than
	// one JSON document; default [DefaultJSONFor]. Until then an error can still set the HTTP status, and from then on
	// nobody in between takes the connection for dead. Negative: a response is a stream only where there are notifications.
	JSONFor time.Duration
	// KeepAlive is the idle time after which an event stream gets a comment, default 15 seconds; negative: none.
	KeepAlive time.Duration

	// NoLegacy refuses clients of revisions before 2026-07-28, which open sessions.
	NoLegacy bool
	// Keys seal session ids. Replicas behind one address need the same. nil: those of the handler, if it is an
	// [mcp.Keyed] as a server.Server is, else random ones.
	Keys *mcp.Keys
	// SessionIdle is how long a legacy session may stay without a request or an open stream, default [DefaultSessionIdle];
	// negative: all its life.
	SessionIdle time.Duration
	// SessionLife bounds the life of a legacy session, default [DefaultSessionLife].
	SessionLife time.Duration
	// MaxSessions bounds the legacy sessions that are kept, default [DefaultMaxSessions]: the next one is answered with 503.
	MaxSessions int
	// Sessions keeps what changes in the life of a session. nil: the memory of this process. Replicas that share a store agree
	// on the log level, the subscriptions and the end of a session: it is asked with each request.
	Sessions SessionStore
	// Events keeps what legacy streams have sent, for clients that lost their connection. nil: bounded memory.
	Events EventStore
	// Retry is how long clients are told to wait before they reconnect to a stream, default [DefaultRetry].
	Retry time.Duration
}

func (o *Options) setDefaults(h mcp.Handler) {
	setDefault(&o.MaxBody, DefaultMaxBody)
	setDefault(&o.BodyTimeout, DefaultBodyTimeout)
	setDefault(&o.JSONFor, DefaultJSONFor)
	setDefault(&o.SessionIdle, DefaultSessionIdle)
	setDefault(&o.SessionLife, DefaultSessionLife)
	if o.SessionIdle < 0 {
		o.SessionIdle = o.SessionLife
	}
	setDefault(&o.MaxSessions, DefaultMaxSessions)
	setDefault(&o.Retry, DefaultRetry)
	if o.Keys == nil {
		if k, ok := h.(mcp.Keyed); ok {
			o.Keys = k.Keys()
		} else {
			o.Keys = mcp.RandomKeys()
		}
	}
	if o.Principal == nil {
		o.Principal = func(*http.Request) mcp.Principal { return o.ServerOptions.Principal }
	}
	if o.Sessions == nil {
		o.Sessions = newMemorySessions()
	}
	if o.Events == nil {
		o.Events = NewMemoryEvents()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

func setDefault[T comparable](to *T, byDefault T) {
	var zero T
	if *to == zero {
		*to = byDefault
	}
}

// Server is an MCP endpoint: an [http.Handler] that serves clients of both eras at the same time. It is safe for concurrent
// use.
type Server struct {
	opts        Options
	edge        *serving.Edge
	headers     mirroredHeaders
	bodies      *overhttp.Bodies
	slowAnswers *timeout.Queue // of answers that become streams
	sessions    sessionRegistry
	workers     *workerPool
	instance    string        // tells lanes of this Server from those of replicas
	streamCount atomic.Uint64 // that were opened, which names them

	mu            sync.Mutex
	requests      sync.WaitGroup
	shutdownHooks map[*func()]struct{}   // what ends those that would never end by themselves
	modernCalls   map[*response]struct{} // of the modern era
	closed        bool
}

// Handler returns the endpoint of h. Mount it under any path; call [Server.Shutdown] before the program ends.
func Handler(h mcp.Handler, opts ...Options) *Server {
	s := &Server{shutdownHooks: map[*func()]struct{}{}, modernCalls: map[*response]struct{}{}, workers: newWorkers(), instance: newSessionKey()[:8] + "-"}
	if len(opts) > 0 {
		s.opts = opts[0]
	}
	s.opts.setDefaults(h)
	s.bodies = overhttp.NewBodies(s.opts.MaxBody, s.opts.BodyTimeout)
	s.slowAnswers = timeout.New(s.opts.JSONFor)
	if s.opts.JSONFor < 0 {
		s.slowAnswers = timeout.New(DefaultJSONFor) // of answers that cannot be documents
	}
	s.edge = serving.NewEdge(h, s.opts.ServerOptions)
	s.headers = newMirroredHeaders(s.opts.Vocabulary)
	s.sessions.initRegistry(s)
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
		s.refuseMethod(w, "this endpoint takes POST, and GET and DELETE of legacy sessions")
	}
}

func (s *Server) refuseMethod(w http.ResponseWriter, why string) {
	allowed := "POST, GET, DELETE"
	if s.opts.NoLegacy {
		allowed = "POST"
	}
	w.Header().Set("Allow", allowed)
	overhttp.Refuse(w, http.StatusMethodNotAllowed, why)
}
