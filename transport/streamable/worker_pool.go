package streamable

import (
	"sync"
	"time"
)

// workerIdle is how long an idle worker waits for another call. A reused worker saves a call the
// growth of a fresh stack.
const workerIdle = 5 * time.Second

// workerPool runs the calls of legacy sessions. They need goroutines of their own, because they may
// continue after the HTTP request that brought them.
type workerPool struct {
	work chan *answerStream // unbuffered: only an idle worker receives
	quit chan struct{}
	once sync.Once
	busy sync.WaitGroup
}

func newWorkers() *workerPool {
	return &workerPool{work: make(chan *answerStream), quit: make(chan struct{})}
}

// startAnswer runs the call of a on an idle worker or, if there is none, on a new one. It does not
// wait.
func (w *workerPool) startAnswer(a *answerStream) {
	select {
	case w.work <- a:
	default:
		w.busy.Go(func() { w.runWorker(a) })
	}
}

func (w *workerPool) runWorker(a *answerStream) {
	timer := time.NewTimer(workerIdle)
	defer timer.Stop()
	for {
		a.runRequest()
		timer.Reset(workerIdle)
		select {
		case a = <-w.work:
		case <-timer.C:
			return
		case <-w.quit:
			return
		}
	}
}

// close ends idle workers now and busy ones after their call. It does not wait for them.
func (w *workerPool) close() { w.once.Do(func() { close(w.quit) }) }
