package hub

import (
	"sync"
	"time"
)

// clock holds a call to its limits. It stands still while somebody is asked what the server wants to know.
type clock struct {
	idle, total *stopwatch

	mu    sync.Mutex
	asked int // questions that wait for an answer
}

type clockKey struct{}

// pause stops the clock until resume is called.
func (k *clock) pause() (resume func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked++; k.asked == 1 {
		k.idle.stop()
		k.total.stop()
	}
	return k.resume
}

func (k *clock) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked--; k.asked == 0 {
		k.idle.restart()
		k.total.start()
	}
}

// alive is a sign of life.
func (k *clock) alive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked == 0 {
		k.idle.stop()
		k.idle.restart()
	}
}

// stopwatch does something when it has run for so long. A nil stopwatch never does.
type stopwatch struct {
	limit, left time.Duration
	since       time.Time
	timer       *time.Timer
}

// newStopwatch returns one that runs; nil where there is no limit.
func newStopwatch(limit time.Duration, do func()) *stopwatch {
	if limit <= 0 {
		return nil
	}
	return &stopwatch{limit: limit, left: limit, since: time.Now(), timer: time.AfterFunc(limit, do)}
}

func (s *stopwatch) stop() {
	if s != nil {
		s.timer.Stop()
		s.left -= time.Since(s.since)
	}
}

// start goes on where stop has left off.
func (s *stopwatch) start() {
	if s != nil {
		s.since = time.Now()
		s.timer.Reset(max(s.left, 0))
	}
}

// restart begins anew.
func (s *stopwatch) restart() {
	if s != nil {
		s.left = s.limit
		s.start()
	}
}
