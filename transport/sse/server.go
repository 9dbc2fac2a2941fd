package sse

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// Server is an [http.Handler] that serves both endpoints of the transport: GET is the stream, POST takes the messages of one.
// It is safe for concurrent use.
type Server struct {
	handler mcp.Handler
	opts    Options
	bodies  *overhttp.Bodies

	mu       sync.Mutex
	sessions map[string]*session
	open     sync.WaitGroup // sessions
	closing  bool
}

// Handler serves h. Mount it under any one path, "/sse" by custom: clients are told to POST to where they opened the
// stream, by a reference relative to it, so that http.StripPrefix or a proxy may change what is before the last segment
// of the path. Call [Server.Shutdown] before the http.Server's own, which waits for streams.
func Handler(h mcp.Handler, opts ...Options) *Server {
	s := &Server{handler: h, sessions: map[string]*session{}}
	if len(opts) > 0 {
		s.opts = opts[0]
	}
	s.opts.setDefaults()
	s.bodies = overhttp.NewBodies(s.opts.MaxBody, s.opts.BodyTimeout)
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
		overhttp.Refuse(w, http.StatusMethodNotAllowed, "GET opens a stream, POST sends a message")
	}
}

// serveGET is the life of a session.
func (s *Server) serveGET(w http.ResponseWriter, r *http.Request) {
	ss := newSession(s, w, s.opts.Principal(r))
	if refusal := s.addSession(ss); refusal != "" {
		refuseBusy(w, refusal)
		return
	}
	defer s.removeSession(ss)
	defer context.AfterFunc(r.Context(), func() { ss.hangUp(errClientGone) })()
	ss.serveStream(context.WithoutCancel(r.Context()), endpointReference(r, ss.id))
}

// addSession admits a session, or says why not.
func (s *Server) addSession(ss *session) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return shuttingDown
	case len(s.sessions) >= s.opts.MaxSessions:
		return "there are too many sessions"
	}
	s.sessions[ss.id] = ss
	s.open.Add(1)
	return ""
}

func (s *Server) removeSession(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss.id)
	s.open.Done()
}

func (s *Server) findSession(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// Shutdown takes no further streams and calls (503 with Retry-After), gives calls in flight DrainTimeout to be answered, the
// answers to what they have asked included, and ends the streams. When ctx ends first, the streams are cut off; the error
// is its cause.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, ss := range s.stopAccepting() {
		ss.cancel(errShutdown)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.open.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, ss := range s.stopAccepting() {
		ss.hangUp(errShutdown)
	}
	return context.Cause(ctx)
}

// stopAccepting takes nothing new and returns the sessions that are open.
func (s *Server) stopAccepting() (open []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, ss := range s.sessions {
		open = append(open, ss)
	}
	return open
}

const (
	shuttingDown = "the server is shutting down"
	retryAfter   = 5 * time.Second
)

func refuseBusy(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	overhttp.Refuse(w, http.StatusServiceUnavailable, why)
}

// sessionParameter is what the query of a POST names the session with.
const sessionParameter = "sessionId"

// newSessionID returns 130 bits that nobody can guess.
func newSessionID() string { return rand.Text() }

// endpointReference is where a client sends the messages of a session: the last segment of the path of its stream, which is what it
// has asked for before anything in between has changed it. What the query said stays in it.
func endpointReference(r *http.Request, id string) string {
	path := r.URL.EscapedPath()
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = asked.EscapedPath()
	}
	segment := path[strings.LastIndexByte(path, '/')+1:]
	if strings.Contains(segment, ":") {
		segment = "./" + segment // or it would be taken for a scheme
	}
	query := ""
	for _, pair := range strings.Split(r.URL.RawQuery, "&") {
		if key, _, _ := strings.Cut(pair, "="); pair != "" && key != sessionParameter {
			query += pair + "&"
		}
	}
	return segment + "?" + query + sessionParameter + "=" + id
}
