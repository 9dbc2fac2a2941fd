package work

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/bench/side"
)

// repeat measures an operation, width of them in flight. Used says what client and server have used.
func (o Options) repeat(width int, used func() (side.Usage, error), operation func() error) (Result, error) {
	n, err := o.warm(width, operation)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	before, err1 := used()
	start := time.Now()
	err = inFlight(width, n, operation)
	elapsed := time.Since(start)
	after, err2 := used()
	spent, each := after.Since(before), float64(n)
	return Result{
		Time: float64(elapsed) / each, CPU: float64(spent.CPU) / each, Allocs: spent.Mallocs / each, Bytes: spent.Allocated / each,
	}, errors.Join(err, err1, err2)
}

// warm repeats the operation until pools and stacks are full, and returns how often it fits into the time.
func (o Options) warm(width int, operation func() error) (n int, err error) {
	part := o.Time / 3
	start := time.Now()
	for batch := width; ; batch *= 2 {
		begun := time.Now()
		if err := inFlight(width, batch, operation); err != nil {
			return 0, err
		}
		if now := time.Now(); now.Sub(start) > part {
			fit := float64(o.Time) / float64(now.Sub(begun)) * float64(batch)
			return max(int(fit)/width, 1) * width, nil
		}
	}
}

// inFlight does n operations, width at a time; n is a multiple of width.
func inFlight(width, n int, operation func() error) error {
	if width == 1 {
		for range n {
			if err := operation(); err != nil {
				return err
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	errs := make([]error, width)
	for i := range errs {
		wg.Go(func() { errs[i] = inFlight(1, n/width, operation) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// here is the usage of this process.
func here() (side.Usage, error) { return side.Used(false), nil }
