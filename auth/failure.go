package auth

import (
	"context"
	"errors"
	"time"
)

// retryLogin is how long requests fail with a failed login before they ask the user again.
const retryLogin = time.Minute

// loginFailure is a login that a request led to and that failed.
type loginFailure struct {
	err        error
	generation uint64 // of the record
	until      time.Time
}

// recentFailure returns the error of a login that failed a short time ago, or nil. A user who has
// refused is not asked by each further request, but by Login, or after the record has changed.
func (t *Transport) recentFailure(n *need, generation uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.failure; n.kind == renewal && f.err != nil && f.generation == generation && time.Now().Before(f.until) {
		return f.err
	}
	return nil
}

// noteFailure remembers the failure of a login, unless its callers have gone. A step-up has its own
// bound.
func (t *Transport) noteFailure(ctx context.Context, n *need, generation uint64, err error) {
	if n.kind == stepUp || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLoginTimeout) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = loginFailure{err: err, generation: generation, until: time.Now().Add(retryLogin)}
}
