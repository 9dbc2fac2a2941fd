package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff says how long to wait before the nth try: twice as long each time, with jitter so that clients of one server
// do not come back together.
type backoff struct{ base, cap time.Duration }

// delay returns the wait before try n, counted from 1: between half of what is due and all of it.
func (b backoff) delay(n int) time.Duration {
	due := b.cap
	if shift := n - 1; shift < 32 && b.base<<shift>>shift == b.base {
		due = min(b.cap, b.base<<shift)
	}
	return due/2 + rand.N(due/2+1)
}

// waitDelay waits; it reports false if ctx ended first. A receive on early ends the wait as its time would.
func waitDelay(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-early:
		return true
	case <-ctx.Done():
		return false
	}
}
