package mcpwire

import (
	"context"
	"time"
)

type arrivalKey struct{}

// WithArrival returns a context for a live question of a server that arrived at a time. The
// question is handled later, when other calls may have started.
func WithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// Arrival returns the time at which a question arrived, or the current time if it is unknown.
func Arrival(ctx context.Context) time.Time {
	if at, ok := ctx.Value(arrivalKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}
