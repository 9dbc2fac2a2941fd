package exit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// WithSignals returns a context that the first signal ends, so that calls are cancelled at their servers and servers
// are ended. The second one ends dowel at once; servers that run then are ended without dowel.
//
// A write to a pipe that nobody reads becomes an error, instead of the process's end. The children do not inherit that.
func WithSignals(ctx context.Context, notice func(string)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, pipes := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(pipes, syscall.SIGPIPE)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for first := true; ; first = false {
			select {
			case s := <-signals:
				cause := &Interruption{s}
				if !first {
					os.Exit(cause.ExitCode())
				}
				notice(fmt.Sprintf("%v: ending; once more ends at once", s))
				cancel(cause)
			case <-stop:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(stop)
		<-stopped
		cancel(nil)
	}
}
