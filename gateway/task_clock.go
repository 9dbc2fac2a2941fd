package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
)

// taskClock applies the limit of a whole call to a call that may become a task at the upstream. The
// hub limits each request about the task only. The clock stands still while a question is open.
type taskClock struct {
	timeout.Clock
	server string
	cancel context.CancelCauseFunc
}

// limitTotal returns a context that ends when the call exceeds the limit of its upstream. It is
// called before the call, at most once.
func (b *bridge) limitTotal(ctx context.Context) (limited context.Context, stop func()) {
	total := b.upstream.Definition().Total
	if total <= 0 {
		return ctx, func() {}
	}
	b.clock = &taskClock{server: b.upstream.Name()}
	ctx, b.clock.cancel = context.WithCancelCause(ctx)
	b.clock.Start(0, total, b.clock)
	return ctx, func() {
		b.clock.Stop()
		b.clock.cancel(nil)
	}
}

// Exceed implements [timeout.ClockOwner].
func (k *taskClock) Exceed(_ timeout.Limit, after time.Duration) {
	k.cancel(totalError(fmt.Sprintf("the server %s has not answered within %v", k.server, after)))
}

// totalError reports that a call has exceeded the limit of its upstream. It matches
// [context.DeadlineExceeded].
type totalError string

func (e totalError) Error() string { return string(e) }

// Is implements the interface that [errors.Is] looks for.
func (totalError) Is(target error) bool { return target == context.DeadlineExceeded }
