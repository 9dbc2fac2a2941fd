package hub

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
)

func init() {
	hublink.Redial = func(u any, cause string) bool { return u.(*Upstream).redial(cause) }
}

// awaitNextStart waits in a state without a connection, until a restart is requested or the next
// attempt is due.
func (u *Upstream) awaitNextStart(ctx context.Context) {
	u.mu.Lock()
	next := u.state.Next
	u.mu.Unlock()
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		due = timer.C
	}
	changed, stop := u.pollStartFiles(ctx)
	defer stop()
	select {
	case <-ctx.Done():
		return
	case <-due:
		u.enterRetry("it is tried again")
		return
	case <-changed:
		u.enterRetry("its program or folder has changed")
		return
	case <-u.redialed: // which has entered Starting
		return
	case <-u.wake:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.enterStartState()
}

// enterRetry enters Starting for another attempt.
func (u *Upstream) enterRetry(cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.state
	u.setState(State{Status: Starting, Cause: cause, Err: s.Err, Diagnosis: s.Diagnosis, Attempt: s.Attempt})
}

// redial begins another attempt at once after a failure. It does not change the wait after the next
// failure. It returns false while the server starts.
func (u *Upstream) redial(cause string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch s := u.state; s.Status {
	case Starting:
		return false
	case Failed:
		u.setState(State{Status: Starting, Cause: cause, Err: s.Err, Diagnosis: s.Diagnosis, Attempt: s.Attempt})
		select {
		case u.redialed <- struct{}{}:
		default:
		}
	}
	return true
}

// enterFailure enters the state after a failed attempt or a lost connection. steady says that
// the connection had lasted for stableAfter. After the first loss, another attempt begins at
// once. After two failures that no waiting can correct, the next attempt waits for a change.
// u.mu is held.
func (u *Upstream) enterFailure(err error, diagnosis *doctor.Diagnosis, steady bool) {
	s := State{Err: err, Diagnosis: diagnosis, Attempt: u.state.Attempt + 1, Cause: "it could not be started"}
	old := u.state.Status
	switch {
	case steady:
		s.Attempt = 1
	case sharedserver.HasNoOwner(err): // the server was not tried
		s.Attempt = max(u.state.Attempt, 1)
	}
	if u.ownerless++; !sharedserver.HasNoOwner(err) {
		u.ownerless = 0
	}
	isBrief := sharedserver.HasNoOwner(err) && time.Since(u.state.Since) < u.hub.opts.MinBackoff // such losses are not counted
	if old == Ready && (steady || s.Attempt == 1) && !isBrief {
		s.Status, s.Cause = Starting, "the connection was lost" // the next attempt follows at once
		u.setState(s)
		return
	}
	s.Status = failureStatus(err)
	if s.Status == NeedsLogin {
		s.Cause = "it needs a login"
	}
	if old == Ready {
		s.Cause = "the connection was lost"
	}
	if cause := u.takeFileCause(); cause != "" {
		s.Status, s.Cause = Starting, cause
		u.setState(s)
		return
	}
	if u.awaited.again {
		s.Cause = "it waits for " + u.awaited.what
	} else {
		s.Next = time.Now().Add(u.retryDelay(max(s.Attempt, u.ownerless))) // a redial may come before
	}
	u.setState(s)
}

// retryDelay returns the wait before an attempt: exponential, and shortened at random by up to half
// so that servers do not start together.
func (u *Upstream) retryDelay(attempt int) time.Duration {
	d := u.hub.opts.MaxBackoff
	if attempt < 16 {
		d = min(u.hub.opts.MinBackoff<<(attempt-1), u.hub.opts.MaxBackoff)
	}
	return d/2 + rand.N(d/2+1)
}
