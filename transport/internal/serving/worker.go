package serving

import "time"

// workerIdle is how long workers are kept for a connection that serves no call. A worker that is used again saves a call
// the growth of a fresh stack, which costs more than the rest of the edge.
const workerIdle = 5 * time.Second

// dispatchCall runs a call on an idle worker, or on a new one: never later than now.
func (s *server) dispatchCall(c *call) {
	if !s.usedSinceSweep.Load() && !s.usedSinceSweep.Swap(true) { // mostly it is, and reading is cheap
		s.sweeper.Reset(workerIdle)
	}
	select {
	case s.idleWorkers <- c:
	default:
		s.wg.Add(1)
		go s.runWorker(c)
	}
}

// serveCall serves a call and sends what it comes to.
func (s *server) serveCall(c *call) {
	defer s.calls.finishCall(c)
	frame, refused := c.answerRequest()
	if frame == nil { // nothing is sent, and nobody misses the handler's error
		if c.batch != nil {
			c.batch.addResponse(nil)
		}
		return
	}
	s.calls.releaseID(c)
	c.sendResponse(frame)
	if frame := c.encodeEnd(refused); frame != nil {
		c.sendResponse(frame)
	}
}

func (s *server) runWorker(c *call) {
	defer s.wg.Done()
	for c != nil {
		s.serveCall(c)
		c = <-s.idleWorkers // nil sends the worker home
	}
}

// stopIdleWorkers sends idle workers home where no call has come for a while.
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
