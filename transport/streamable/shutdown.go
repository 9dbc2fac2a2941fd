package streamable

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/transport"
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
// waits for calls in flight and then ends the sessions. When ctx ends first, calls are cancelled; the error is its cause.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, end := range s.close() {
		(*end)()
	}
	done := make(chan struct{})
	go func() { defer close(done); s.requests.Wait() }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.sessions.close()
	s.workers.close()
	return err
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
	defer s.mu.Unlock()
	s.streams[key] = struct{}{}
	if s.closed {
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
	transport.Refuse(w, http.StatusServiceUnavailable, why)
}
