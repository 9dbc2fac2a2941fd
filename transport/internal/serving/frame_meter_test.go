package serving

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/internal/quota"
)

// Of frames that are written at once, only the first may exceed the limit.
func TestFramesAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	const frames, size, most = 32, 1 << 20, 3 << 20
	q := quota.New(quota.Limits{ClientBytes: most})
	m := &frameMeter{account: quota.Account{Quota: q, Client: quota.Client{Name: "one"}}}
	m.mu.Lock() // all writers arrive before the first one is counted
	var arrived atomic.Int32
	var all sync.WaitGroup
	for range frames {
		all.Go(func() {
			arrived.Add(1)
			_ = m.countBytes(size) // most are refused
		})
	}
	for arrived.Load() < frames {
		runtime.Gosched()
	}
	for range 1000 { // so that they wait for the lock
		runtime.Gosched()
	}
	m.mu.Unlock()
	all.Wait()
	if bytes, _, _ := q.Used(); bytes > most {
		t.Errorf("%d bytes are counted, want at most %d", bytes, most)
	}
}
