package serving

import "time"

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
	frame, refused := c.answerRequest()
	if frame == nil { // the client no longer waits
		if c.batch != nil {
			c.batch.addResponse(c.id, nil)
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
