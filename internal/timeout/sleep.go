package timeout

import (
	"context"
	"time"
)

// Sleep waits for d, or until ctx ends: then it returns the cause of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
