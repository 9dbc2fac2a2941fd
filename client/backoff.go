package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff computes the wait before the nth attempt. The wait doubles with each attempt. Random
// jitter keeps the clients of one server from reconnecting at the same moment.
type backoff struct{ base, cap time.Duration }

// delay returns the wait before attempt n, counted from 1: a random duration between half the
// nominal wait and all of it.
func (b backoff) delay(n int) time.Duration {
	due := b.cap
	if shift := n - 1; shift < 32 && b.base<<shift>>shift == b.base {
		due = min(b.cap, b.base<<shift)
	}
	return due/2 + rand.N(due/2+1)
}

// waitDelay waits for d. It returns true early if early delivers a value, and false if ctx ends
// first.
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
