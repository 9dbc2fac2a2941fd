package serving

import (
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// workerIdle is the time between two sweeps of idle workers. Reusing a worker saves a call the
// growth of a new stack, which costs more than the rest of the edge.
const workerIdle = 5 * time.Second

// dispatchCall runs a call on an idle worker, or starts a worker. It does not wait.
func (s *server) dispatchCall(c *call) {
	if !s.usedSinceSweep.Load() && !s.usedSinceSweep.Swap(true) { // Load first: it is usually true, and cheaper than Swap
		s.sweeper.Reset(workerIdle)
	}
	select {
	case s.idleWorkers <- c:
	default:
		s.wg.Add(1)
		go s.runWorker(c)
	}
}

// serveCall serves a call and sends its response.
func (s *server) serveCall(c *call) {
	defer s.calls.finishCall(c)
	if c.isStream {
		defer s.closeStream()
	}
	if o, ok := c.era.(initializing); ok {
		defer close(o.greeted)
	}
	isReturned := false
	defer func() {
		if !isReturned {
			s.answerExited(c)
		}
	}()
	frame, refused := c.answerRequest()
	isReturned = true
	s.respond(c, frame)
	if frame == nil {
		return
	}
	if end := c.encodeEnd(refused); end != nil {
		c.sendResponse(end)
	}
}

// respond sends the response of a call. frame is nil if the client no longer waits for it.
func (s *server) respond(c *call, frame []byte) {
	if frame == nil {
		if c.batch != nil {
			c.batch.addResponse(c.id, nil)
		}
		return
	}
	s.calls.releaseID(c)
	if c.batch != nil || !s.deliverer.Deliver(frame, false) {
		c.sendResponse(frame)
	}
}

// answerExited answers a call after its handler, or the encoder of its result, has ended the
// goroutine. t.FailNow of a test does so with runtime.Goexit.
func (s *server) answerExited(c *call) {
	s.logger.Error("the handler ended its goroutine", "method", c.req.Method)
	var frame []byte
	if (c.closePeer() || c.isEncoding) && !c.isCancelled() {
		frame = jsonrpc.AppendError(nil, c.id, mcp.Errorf(jsonrpc.CodeInternal, "internal error"))
	}
	s.respond(c, frame)
}

func (s *server) runWorker(c *call) {
	defer s.wg.Done()
	for c != nil {
		s.serveCall(c)
		c = <-s.idleWorkers // nil ends the worker
	}
}

// stopIdleWorkers ends the idle workers if no call was dispatched since the last sweep.
func (s *server) stopIdleWorkers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dispatchClosed:
		return
	case s.usedSinceSweep.Swap(false):
		s.sweeper.Reset(workerIdle)
		return
	}
	for {
		select {
		case s.idleWorkers <- nil:
		default:
			return
		}
	}
}
