// Package polltest waits for conditions in tests with real processes, sockets and files, where
// testing/synctest does not work. Its limits are so long that a busy machine does not reach them.
package polltest

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Limit bounds each wait of this package. A test that passes does not reach it.
const Limit = 2 * time.Minute

const pause = 2 * time.Millisecond

// Until waits until condition returns true. After [Limit] it ends the test and prints awaited,
// which names the condition.
func Until(t testing.TB, awaited string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); !condition(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("after %v there is still not: %s", Limit, awaited)
		}
	}
}

// UntilNil calls check until it returns nil. After [Limit] it ends the test with the last error.
func UntilNil(t testing.TB, check func() error) {
	t.Helper()
	end := time.Now().Add(Limit)
	for err := check(); err != nil; err = check() {
		if time.Now().After(end) {
			t.Fatalf("still so after %v: %v", Limit, err)
		}
		time.Sleep(pause)
	}
}

// UntilLongEnough calls try with limit, and with twice the limit after each error, until try
// returns nil. It is for a test in which a time limit must expire, but not before the first part of
// the work is done. If try fails with [Limit], UntilLongEnough ends the test with the error.
func UntilLongEnough(t testing.TB, limit time.Duration, try func(limit time.Duration) error) {
	t.Helper()
	for {
		err := try(limit)
		if err == nil {
			return
		}
		if limit >= Limit {
			t.Fatalf("with a limit of %v: %v", limit, err)
		}
		limit = min(2*limit, Limit)
	}
}

// Within calls f and waits for its return. After [Limit] it ends the test and prints every
// goroutine. f runs on a goroutine of its own, so it must not end the test.
func Within(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("it has not returned within %v:\n%s", Limit, stacks())
	}
}

// Blocked returns the number of goroutines that are blocked below function, for example in
// "(*Child).Read". A goroutine that runs or could run does not count.
func Blocked(function string) int {
	n := 0
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if strings.Contains(frames, function+"(") && !strings.Contains(header, "[running") && !strings.Contains(header, "[runnable") {
			n++
		}
	}
	return n
}

func stacks() string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return string(bytes.TrimSpace(buf[:n]))
		}
		buf = make([]byte, 2*len(buf))
	}
}
