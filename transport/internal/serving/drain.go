package serving

import (
	"errors"
	"fmt"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"io"

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
	if timeout.Wait(&s.calls.busy, s.opts.DrainTimeout) {
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
	if !timeout.Wait(&s.wg, s.opts.DrainTimeout) {
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

func writable(conn transport.Conn) bool {
	h, ok := conn.(transport.HalfOpener)
	return ok && h.HalfOpen()
}

func (s *server) endSubscriptions() {
	s.calls.endSubscriptions(frames.ErrCancelled)
	if ss := s.legacySession(); ss != nil {
		ss.end()
	}
}
