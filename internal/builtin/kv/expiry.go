package kv

import (
	"log/slog"
	"time"
)

const (
	// maxNap bounds how late a pair is removed after a clock was set or a computer slept.
	maxNap = time.Minute
	// minNap keeps a clock that runs behind the sweeper's from making it busy.
	minNap = 5 * time.Millisecond
)

// sweeper removes pairs when their time has come, so that clients are told: one goroutine that
// sleeps until then.
type sweeper struct {
	// sweep removes expired pairs, and returns the time of the next expiry, or the zero time.
	sweep func() (next time.Time, err error)
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

func startSweeper(sweep func() (time.Time, error)) *sweeper {
	s := &sweeper{sweep: sweep, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// wakeUp makes the sweeper look again when the next pair is due.
func (s *sweeper) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close ends the sweeper and waits for it.
func (s *sweeper) close() {
	close(s.stop)
	<-s.done
}

func (s *sweeper) run() {
	defer close(s.done)
	for {
		next, err := s.sweep()
		if err != nil {
			slog.Warn("kv: removing what has expired failed; it is tried again", "err", err)
		}
		if !s.sleepUntil(next, err != nil) {
			return
		}
	}
}

// sleepUntil waits until next, or until the sweeper is woken. It returns false when the sweeper
// must end.
func (s *sweeper) sleepUntil(next time.Time, failed bool) bool {
	nap := maxNap
	wake := s.wake
	switch {
	case failed:
		nap, wake = time.Second, nil
	case !next.IsZero():
		nap = min(max(time.Until(next), minNap), maxNap)
	}
	timer := time.NewTimer(nap)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-s.stop:
		return false
	}
	return true
}
