package kv

import (
	"log/slog"
	"time"
)

const (
	// maxNap bounds the delay of a removal if the clock is changed or the computer sleeps.
	maxNap = time.Minute
	// minNap prevents a busy loop if the store's clock is behind this process's: then next is past,
	// but the store has nothing to remove yet.
	minNap = 5 * time.Millisecond
)

// sweeper removes pairs when they expire, so that clients are notified. Its goroutine sleeps until
// the next expiry.
type sweeper struct {
	// sweep removes expired pairs and returns the time of the next expiry; the zero time if no pair
	// will expire.
	sweep func() (next time.Time, err error)
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

func startSweeper(sweep func() (time.Time, error)) *sweeper {
	s := &sweeper{sweep: sweep, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go s.sweepExpired()
	return s
}

// wakeUp makes the sweeper sweep at once. Call it after a new pair, which may be the next to
// expire.
func (s *sweeper) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stopSweeper ends the sweeper and waits for it.
func (s *sweeper) stopSweeper() {
	close(s.stop)
	<-s.done
}

func (s *sweeper) sweepExpired() {
	defer close(s.done)
	for {
		next, err := s.sweep()
		if err != nil {
			slog.Warn("kv: expired pairs could not be removed; trying again", "err", err)
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
