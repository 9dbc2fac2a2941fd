package timeout

import (
	"sync"
	"time"
)

// Wait waits until group is done, but no longer than limit, and reports whether group was done in time. When it was not,
// a goroutine keeps waiting for group.
func Wait(group *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() { defer close(done); group.Wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
