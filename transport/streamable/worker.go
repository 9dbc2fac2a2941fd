package streamable

import (
	"sync"
	"time"
)

// workerIdle is how long a worker is kept that has nothing to do. One that is used again saves a call the growth of a fresh
// stack.
const workerIdle = 5 * time.Second

// workerPool run the calls of legacy sessions, which may go on when the request that brought them has ended.
type workerPool struct {
	work chan *legacyStream
	quit chan struct{}
	once sync.Once
	busy sync.WaitGroup
}

func newWorkers() *workerPool {
	return &workerPool{work: make(chan *legacyStream), quit: make(chan struct{})}
}

// startAnswer runs a lane's call on an idle worker, or on a new one: never later than now.
func (w *workerPool) startAnswer(l *legacyStream) {
	select {
	case w.work <- l:
	default:
		w.busy.Go(func() { w.runWorker(l) })
	}
}

func (w *workerPool) runWorker(l *legacyStream) {
	timer := time.NewTimer(workerIdle)
	defer timer.Stop()
	for {
		l.runRequest()
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
func (w *workerPool) close() { w.once.Do(func() { close(w.quit) }) }
