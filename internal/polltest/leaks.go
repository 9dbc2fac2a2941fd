package polltest

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// NoLeaks fails the test if goroutines or file descriptors that it opened outlive it. It needs
// /dev/fd, and a test that runs alone.
func NoLeaks(t *testing.T) {
	t.Helper()
	if r, w, err := os.Pipe(); err == nil { // the runtime's poller opens two descriptors of its own with the first pipe
		r.Close()
		w.Close()
	}
	goroutines, descriptors := runtime.NumGoroutine(), countDescriptors(t)
	t.Cleanup(func() {
		Until(t, fmt.Sprintf("at most %d goroutines and %d descriptors", goroutines, descriptors), func() bool {
			return runtime.NumGoroutine() <= goroutines && countDescriptors(t) <= descriptors
		})
	})
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
