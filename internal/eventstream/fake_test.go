package eventstream

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// fake is a ResponseWriter that records. Between stop and resume its writes block, as for a slow
// client, until a deadline in the past ends them.
type fake struct {
	header http.Header

	mu       sync.Mutex
	changed  *sync.Cond
	status   int
	written  strings.Builder
	flushed  int // bytes
	flushes  int
	stopped  bool
	allowed  int // writes, though stopped
	dead     bool
	inside   int // calls at this moment
	over     bool
	misuse   string
	deadline []time.Time
}

func newFake() *fake {
	f := &fake{header: http.Header{}}
	f.changed = sync.NewCond(&f.mu)
	return f
}

func (f *fake) enter() {
	f.inside++
	switch {
	case f.over:
		f.misuse = "used after Close"
	case f.inside > 1:
		f.misuse = "used by two at once"
	}
}

func (f *fake) Header() http.Header { return f.header }

func (f *fake) WriteHeader(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

func (f *fake) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	defer func() { f.inside-- }()
	for f.stopped && f.allowed == 0 && !f.dead {
		f.changed.Wait()
	}
	f.allowed = max(f.allowed-1, 0)
	if f.dead {
		return 0, os.ErrDeadlineExceeded
	}
	return f.written.Write(b)
}

func (f *fake) FlushError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	defer func() { f.inside-- }()
	if f.dead {
		return os.ErrDeadlineExceeded
	}
	f.flushed = f.written.Len()
	f.flushes++
	return nil
}

func (f *fake) SetWriteDeadline(t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deadline = append(f.deadline, t)
	if !t.IsZero() && t.Before(time.Now()) {
		f.dead = true
		f.changed.Broadcast()
	}
	return nil
}

func (f *fake) stop() { f.mu.Lock(); defer f.mu.Unlock(); f.stopped = true }

// allow lets one write pass.
func (f *fake) allow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allowed++
	f.changed.Broadcast()
}

func (f *fake) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = false
	f.changed.Broadcast()
}

// text returns the data that a client has received.
func (f *fake) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.String()[:f.flushed]
}

// close marks that the handler has returned.
func (f *fake) close() { f.mu.Lock(); defer f.mu.Unlock(); f.over = true }

func (f *fake) misused() string { f.mu.Lock(); defer f.mu.Unlock(); return f.misuse }
