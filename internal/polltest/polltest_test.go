package polltest

import (
	"sync/atomic"
	"testing"
)

func TestUntilAndWithinReturn(t *testing.T) {
	t.Parallel()
	looks := 0
	Until(t, "three looks", func() bool { looks++; return looks == 3 })
	var called atomic.Bool
	Within(t, func() { called.Store(true) })
	if !called.Load() {
		t.Error("Within returned before its function")
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
