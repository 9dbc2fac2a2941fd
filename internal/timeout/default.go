package timeout

import (
	"context"
	"fmt"
	"time"
)

// The limits of a request for which the caller has set none. They are far above the time of honest
// work, so that they end a request only if its server will never answer.
const (
	DefaultIdle  = time.Hour
	DefaultTotal = 24 * time.Hour
)

type ownLimitsKey struct{}

type ownLimits struct{ idle, total bool }

// WithOwnLimits returns a context for a request with limits of its own, which replace
// [DefaultIdle], [DefaultTotal] or both. No limit is a limit of its own too.
func WithOwnLimits(ctx context.Context, idle, total bool) context.Context {
	if !idle && !total {
		return ctx
	}
	return context.WithValue(ctx, ownLimitsKey{}, ownLimits{idle, total})
}

// HasOwnLimits reports which default limits the context of a request replaces. ctx may be nil.
func HasOwnLimits(ctx context.Context) (idle, total bool) {
	if ctx == nil {
		return false, false
	}
	own, _ := ctx.Value(ownLimitsKey{}).(ownLimits)
	return own.idle, own.total
}

// DefaultError reports that a request exceeded a default limit. It matches
// [context.DeadlineExceeded].
type DefaultError struct {
	Limit Limit
	After time.Duration
}

func (e *DefaultError) Error() string {
	if e.Limit == Idle {
		return fmt.Sprintf("timed out: no sign of life for %v", e.After)
	}
	return fmt.Sprintf("timed out: not done within %v", e.After)
}

// Is matches [context.DeadlineExceeded].
func (e *DefaultError) Is(target error) bool { return target == context.DeadlineExceeded }
