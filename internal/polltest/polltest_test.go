package polltest

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestUntilAndWithinReturn(t *testing.T) {
	t.Parallel()
	looks := 0
	Until(t, "three looks", func() bool { looks++; return looks == 3 })
	UntilNil(t, func() error {
		if looks++; looks < 6 {
			return errors.New("too few")
		}
		return nil
	})
	if looks != 6 {
		t.Errorf("UntilNil returned after %d looks, want 6", looks)
	}
	var called atomic.Bool
	Within(t, func() { called.Store(true) })
	if !called.Load() {
		t.Error("Within returned before its function")
	}
}

func TestUntilLongEnoughDoublesTheLimit(t *testing.T) {
	t.Parallel()
	var limits []time.Duration
	UntilLongEnough(t, time.Second, func(limit time.Duration) error {
		if limits = append(limits, limit); len(limits) < 3 {
			return errors.New("too short")
		}
		return nil
	})
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}; !slices.Equal(limits, want) {
		t.Errorf("the limits were %v, want %v", limits, want)
	}
}

func TestBlockedCountsWaitingGoroutines(t *testing.T) {
	t.Parallel()
	if n := Blocked("polltest.awaitGate"); n != 0 {
		t.Fatalf("%d goroutines are blocked before one was started", n)
	}
	gate, ended := make(chan struct{}), make(chan struct{})
	go func() { awaitGate(gate); close(ended) }()
	Until(t, "a blocked goroutine", func() bool { return Blocked("polltest.awaitGate") == 1 })
	close(gate)
	<-ended
	Until(t, "no blocked goroutine", func() bool { return Blocked("polltest.awaitGate") == 0 })
}

//go:noinline
func awaitGate(gate chan struct{}) { <-gate }
