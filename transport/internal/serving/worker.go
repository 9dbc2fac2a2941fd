package serving

import "time"

// workerIdle is how long workers are kept for a connection that serves no call. A worker that is used again saves a call
// the growth of a fresh stack, which costs more than the rest of the edge.
const workerIdle = 5 * time.Second

// dispatch runs a call on an idle worker, or on a new one: never later than now.
func (s *server) dispatch(c *call) {
	if !s.active.Load() && !s.active.Swap(true) { // mostly it is, and reading is cheap
		s.sweeper.Reset(workerIdle)
	}
	select {
	case s.work <- c:
	default:
		s.wg.Add(1)
		go s.worker(c)
	}
}

// run serves a call and sends what it comes to.
func (s *server) run(c *call) {
	defer s.calls.done(c)
	frame, refused := c.answer()
	if frame == nil { // nothing is sent, and nobody misses the handler's error
		if c.batch != nil {
			c.batch.add(nil)
		}
		return
	}
	s.calls.leave(c)
	c.send(frame)
	if frame := c.ended(refused); frame != nil {
		c.send(frame)
	}
}

func (s *server) worker(c *call) {
	defer s.wg.Done()
	for c != nil {
		s.run(c)
		c = <-s.work // nil sends the worker home
	}
}

// sweep sends idle workers home where no call has come for a while.
func (s *server) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return
	case s.active.Swap(false):
		s.sweeper.Reset(workerIdle)
		return
	}
	for {
		select {
		case s.work <- nil:
		default:
			return
		}
	}
}
