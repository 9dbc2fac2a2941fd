package serving

import (
	"errors"
	"fmt"
	"io"

	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// errShutdown is the cause of a subscription's context when the server ends the subscription.
var errShutdown = errors.New("the server is shutting down")

// shutDown refuses further calls, ends subscriptions with a result, which tells clients that the
// end is intended, and gives the calls in flight DrainTimeout to be answered.
func (s *server) shutDown() {
	s.calls.stopAdmitting(errShutdown)
	s.calls.cancelSubscriptions(errShutdown)
	s.awaitCalls()
}

// awaitCalls waits for the calls in flight, up to DrainTimeout, and answers the remaining ones
// with an error.
func (s *server) awaitCalls() {
	if timeout.Wait(&s.calls.running, s.opts.DrainTimeout) {
		return
	}
	refused := mcp.Errorf(jsonrpc.CodeInternal, "the connection ends, and the call was not done within %v", s.opts.DrainTimeout)
	if n := s.calls.abandonCalls(refused); n > 0 {
		s.logger.Warn("calls were not done when their connection ended", "calls", n, "after", s.opts.DrainTimeout)
	}
}

// endConnection ends all calls after Read has failed with err: at once if the peer is gone, after
// DrainTimeout if the peer has only stopped sending.
func (s *server) endConnection(err error) {
	s.cancelSubscriptions()
	if errors.Is(err, io.EOF) && canStillWrite(s.conn) {
		s.awaitCalls()
	}
	s.cancelAll(fmt.Errorf("%w: the client has gone", mcp.ErrConnection))
	if !timeout.Wait(&s.wg, s.opts.DrainTimeout) {
		s.logger.Error("handlers were still running after the drain timeout of their connection")
	}
}

// cancelAll cancels the calls, subscriptions and idle workers of the connection.
func (s *server) cancelAll(cause error) {
	s.cancel(cause)
	s.calls.cancelAll(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatchClosed = true
	close(s.idleWorkers) // safe: the reading loop and the deliveries, which send to it, have ended
}

func canStillWrite(conn transport.Conn) bool {
	h, ok := conn.(transport.HalfOpener)
	return ok && h.HalfOpen()
}

func (s *server) cancelSubscriptions() {
	s.calls.cancelSubscriptions(frames.ErrCancelled)
	if ss := s.legacySession(); ss != nil {
		ss.endSession()
	}
}
