package transport

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// errShutdown is the cause of a subscription's context when the server ends it.
var errShutdown = errors.New("the server is shutting down")

// sayGoodbye ends subscriptions with a result, which tells clients that the end is meant, takes no further calls, and gives
// those in flight DrainTimeout to be answered.
func (s *server) sayGoodbye() {
	s.calls.close(errShutdown)
	s.calls.endSubscriptions(errShutdown)
	s.finish()
}

// finish gives the calls in flight DrainTimeout, and answers those in their place that need longer.
func (s *server) finish() {
	if waitFor(&s.calls.busy, s.opts.DrainTimeout) {
		return
	}
	refused := mcp.Errorf(jsonrpc.CodeInternal, "the connection ends, and the call was not done within %v", s.opts.DrainTimeout)
	if n := s.calls.abandon(refused); n > 0 {
		s.logger.Warn("calls were not done when their connection ended", "calls", n, "after", s.opts.DrainTimeout)
	}
}

// drain ends what is in flight: at once where the peer is gone, after a while where it only stopped sending.
func (s *server) drain(err error) {
	s.endSubscriptions()
	if errors.Is(err, io.EOF) && writable(s.conn) {
		s.finish()
	}
	s.end(fmt.Errorf("%w: the client has gone", mcp.ErrConnection))
	if !waitFor(&s.wg, s.opts.DrainTimeout) {
		s.logger.Error("handlers went on after their connection had ended; they were left behind")
	}
}

// end cancels everything that runs for the connection.
func (s *server) end(cause error) {
	s.cancel(cause)
	s.calls.end(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	close(s.work) // the reading loop, which dispatches, has ended
}

// HalfOpener is a Conn whose other half may still be open when Read has reported io.EOF.
type HalfOpener interface{ HalfOpen() bool }

func writable(conn Conn) bool {
	if t, ok := conn.(*tapped); ok {
		conn = t.Conn
	}
	h, ok := conn.(HalfOpener)
	return ok && h.HalfOpen()
}

func (s *server) endSubscriptions() {
	s.calls.endSubscriptions(errCancelled)
	if ss := s.legacySession(); ss != nil {
		ss.end()
	}
}

// waitFor reports whether the group was done within the limit. A goroutine waits on where it was not.
func waitFor(group *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() { defer close(done); group.Wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
