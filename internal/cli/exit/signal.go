package exit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// WithSignals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with an
// [Interruption], so that calls are cancelled and servers are stopped. The second signal exits at
// once; servers notice that by themselves. notice receives a message for the user. Call the
// returned function to stop handling signals.
//
// WithSignals also turns a write to a closed pipe into an error; by default it would end the
// process. Child processes do not inherit this.
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
				notice(fmt.Sprintf("%v: stopping; repeat it to stop at once", s))
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
