package streamable

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

const retryShutdown = 5 * time.Second

// begin enters a request among those that Shutdown waits for.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.requests.Add(1)
	return true
}

// Shutdown takes no further requests (503 with Retry-After), ends subscriptions with a result and the streams of sessions,
// waits for calls in flight and then ends the sessions. The answers to what those calls have asked still come in. When ctx
// ends first, calls are cancelled and have half a second to say so; the error is the cause of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	grace := 2 * time.Second // for what runs without a request, since its client has gone
	for _, end := range s.close() {
		(*end)()
	}
	done := make(chan struct{})
	go func() { defer close(done); s.requests.Wait() }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err, grace = context.Cause(ctx), 250*time.Millisecond
		s.cancelCalls()
		answered := time.NewTimer(grace)
		defer answered.Stop()
		select {
		case <-done:
		case <-answered.C:
		}
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	s.sessions.close(limit)
	select {
	case <-done:
	case <-limit.Done():
	}
	s.workers.close()
	return err
}

var errEnding = mcp.Errorf(jsonrpc.CodeInternal, "the server is shutting down, and the call was not done in time")

// cancelCalls ends the calls of both eras, which say so.
func (s *Server) cancelCalls() {
	s.mu.Lock()
	for out := range s.calls {
		out.ctx.cancel(errEnding)
	}
	s.mu.Unlock()
	s.sessions.each(func(ss *session) { ss.edge.Cancel(errEnding) })
}

// late answers what comes during a shutdown. What a call in flight waits for is still taken.
func (s *Server) late(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.Header.Get(mcpwire.HeaderSessionID) != "" && !s.modernVersion(r) {
		out := s.read(w, r)
		if out == nil {
			return
		}
		if !out.in.Message.IsRequest() && !s.modern(r, out.in.Params) {
			s.postLegacy(w, r, out.in.Message, out.accept)
			return
		}
	}
	refuseBusy(w, "the server is shutting down", retryShutdown)
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// close takes no further requests and returns what ends the streams.
func (s *Server) close() []*func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Keys(s.streams))
}

// onShutdown has end called, in a goroutine of Shutdown's, unless forget was called before.
func (s *Server) onShutdown(end func()) (forget func()) {
	key := &end
	s.mu.Lock()
	s.streams[key] = struct{}{}
	closed := s.closed
	s.mu.Unlock()
	if closed {
		end()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, key)
	}
}

func refuseBusy(w http.ResponseWriter, why string, after time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	overhttp.Refuse(w, http.StatusServiceUnavailable, why)
}
