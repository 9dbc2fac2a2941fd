package streamable

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

const retryShutdown = 5 * time.Second

// beginRequest enters a request among those that Shutdown waits for.
func (s *Server) beginRequest() bool {
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
	for _, end := range s.stopAccepting() {
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
	s.sessions.closeAll(limit)
	select {
	case <-done:
	case <-limit.Done():
	}
	s.workers.close()
	return err
}

var errCallCutOff = mcp.Errorf(jsonrpc.CodeInternal, "the server is shutting down, and the call was not done in time")

// cancelCalls ends the calls of both eras, which say so.
func (s *Server) cancelCalls() {
	s.mu.Lock()
	for out := range s.modernCalls {
		out.ctx.cancel(errCallCutOff)
	}
	s.mu.Unlock()
	s.sessions.forEach(func(ss *session) { ss.edge.Cancel(errCallCutOff) })
}

// serveDuringShutdown answers what comes during a shutdown. What a call in flight waits for is still taken.
func (s *Server) serveDuringShutdown(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.Header.Get(mcp.HeaderSessionID) != "" && !s.namesModernRevision(r) {
		out := s.readMessage(w, r)
		if out == nil {
			return
		}
		if !out.in.Message.IsRequest() && !s.isModern(r, out.in.Params) {
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

// stopAccepting takes no further requests and returns what ends the streams.
func (s *Server) stopAccepting() []*func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Keys(s.shutdownHooks))
}

// onShutdown has end called, in a goroutine of Shutdown's, unless forget was called before.
func (s *Server) onShutdown(end func()) (forget func()) {
	key := &end
	s.mu.Lock()
	s.shutdownHooks[key] = struct{}{}
	closed := s.closed
	s.mu.Unlock()
	if closed {
		end()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.shutdownHooks, key)
	}
}

func refuseBusy(w http.ResponseWriter, why string, after time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	overhttp.Refuse(w, http.StatusServiceUnavailable, why)
}
