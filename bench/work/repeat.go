package work

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/bench/side"
)

// repeat repeats an operation, with width of them in flight, and returns its figures. used returns
// the usage of client and server so far.
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

// warm repeats the operation until pools are filled and stacks have grown. It returns how often the
// operation fits into o.Time.
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

// inFlight runs n operations, width at a time. n must be a multiple of width.
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

// once runs an operation that is only the same work when it is done for the first time in a
// process.
func once(operation func() error) (Result, error) {
	runtime.GC()
	before := side.Used(false)
	start := time.Now()
	err := operation()
	elapsed := time.Since(start)
	spent := side.Used(false).Since(before)
	return Result{Time: float64(elapsed), CPU: float64(spent.CPU), Allocs: spent.Mallocs, Bytes: spent.Allocated}, err
}

// here returns the usage of this process. It is for clients and servers in one process.
func here() (side.Usage, error) { return side.Used(false), nil }
