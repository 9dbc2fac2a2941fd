//go:build linux

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// spread runs f for 0 to n-1, width of them at a time, and returns the first error.
func spread(n, width int, f func(i int) error) error {
	var next atomic.Int64
	var once sync.Once
	var failed error
	var all sync.WaitGroup
	for range min(width, n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					next.Store(int64(n))
					once.Do(func() { failed = fmt.Errorf("number %d: %w", i, err) })
				}
			}
		})
	}
	all.Wait()
	return failed
}

// ends are functions to run at the end.
type ends struct {
	mu  sync.Mutex
	all []func()
}

// add adds a function; it may be nil.
func (e *ends) add(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f != nil {
		e.all = append(e.all, f)
	}
}

func (e *ends) run() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.all {
		f()
	}
}

// bytesText writes a number of bytes with its unit.
func bytesText(n float64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", n/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", n/(1<<20))
	case n >= 1<<10 || n <= -1<<10:
		return fmt.Sprintf("%.1f KiB", n/(1<<10))
	default:
		return fmt.Sprintf("%.0f B", n)
	}
}

// timeText writes a duration with three digits.
func timeText(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	}
}
