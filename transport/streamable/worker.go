package streamable

import (
	"sync"
	"time"
)

// workerIdle is how long a worker is kept that has nothing to do. One that is used again saves a call the growth of a fresh
// stack.
const workerIdle = 5 * time.Second

// workers run the calls of legacy sessions, which may go on when the request that brought them has ended.
type workers struct {
	work chan *lane
	quit chan struct{}
	once sync.Once
	busy sync.WaitGroup
}

func newWorkers() *workers { return &workers{work: make(chan *lane), quit: make(chan struct{})} }

// start runs a lane's call on an idle worker, or on a new one: never later than now.
func (w *workers) start(l *lane) {
	select {
	case w.work <- l:
	default:
		w.busy.Go(func() { w.worker(l) })
	}
}

func (w *workers) worker(l *lane) {
	timer := time.NewTimer(workerIdle)
	defer timer.Stop()
	for {
		l.run()
		timer.Reset(workerIdle)
		select {
		case l = <-w.work:
		case <-timer.C:
			return
		case <-w.quit:
			return
		}
	}
}

// close sends the workers home that are idle, and the others when they are.
func (w *workers) close() { w.once.Do(func() { close(w.quit) }) }
