package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// errLoginChanged says that the result of a change does not count.
var errLoginChanged = errors.New("another replica has changed this login at the same time")

// Update implements [auth.Store].
func (s *storedLogins) Update(ctx context.Context, key string, change func(*auth.Record) (*auth.Record, error)) error {
	lease, err := replica.Hold(ctx, s.cluster.values, replica.KeyOf("login-lease", key), s.cluster.id)
	if err != nil {
		return fmt.Errorf("the login cannot be changed: %w", err)
	}
	defer lease.Release()
	oauth.NoteRecordLock(ctx, lease.Context())
	shared, old, err := s.newest(ctx, key)
	if err != nil {
		return err
	}
	if lease.Context().Err() != nil {
		return oauth.ErrLockLost
	}
	next, err := change(copyOf(old)) // it may change its argument
	if err != nil {
		return err
	}
	next, dropped := succeed(old, next), shared.dropped
	if hasTokens(old) && !hasTokens(next) {
		dropped = &droppedLogin{old.LoginID, time.Now().UTC()}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	err = s.keep(ctx, key, shared, old, next, dropped)
	if errors.Is(err, errLoginChanged) {
		return err // the machine gets the other change with the next one
	}
	return errors.Join(err, s.updateLocal(ctx, key, next))
}

func copyOf(r *auth.Record) *auth.Record {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}

// succeed returns next as the successor of old. Newer tokens of a login have a later time, whatever
// the clock of this machine says.
func succeed(old, next *auth.Record) *auth.Record {
	if next = copyOf(next); next == nil {
		return nil
	}
	next.Generation = 1
	if old == nil {
		return next
	}
	next.Generation = old.Generation + 1
	if isRefresh := next.LoginID == old.LoginID && next.AccessToken != old.AccessToken; isRefresh && !next.ObtainedAt.After(old.ObtainedAt) {
		next.ObtainedAt = old.ObtainedAt.Add(time.Millisecond)
	}
	return next
}

const (
	// keepTimeout bounds how long a changed login waits for the cluster, which may be
	// choosing a leader.
	keepTimeout = time.Minute
	// keepPause is the time between two tries.
	keepPause = time.Second
)

// keep stores a record after its change. Without it, a used refresh token would stay in the
// cluster, so it tries again after every error that another try may not have. Its caller must not
// end with a request.
func (s *storedLogins) keep(ctx context.Context, key string, shared *sharedLogin, old, next *auth.Record, dropped *droppedLogin) error {
	version := shared.version
	for {
		_, err := s.put(ctx, key, next, dropped, version)
		if errors.Is(err, replica.ErrStale) {
			var now *sharedLogin
			if now, err = s.read(ctx, key); err == nil {
				switch {
				case isSame(now.record, next) && isSameDrop(now.dropped, dropped): // the acknowledgement was lost
					return nil
				case !isSameDrop(now.dropped, shared.dropped), !now.mayBecome(next, shared.record, old):
					return errLoginChanged
				}
				version = now.version
				continue
			}
		}
		if err == nil || errors.Is(err, replica.ErrTooLarge) {
			return err
		}
		select {
		case <-time.After(keepPause):
		case <-ctx.Done():
			return err
		case <-s.cluster.ctx.Done():
			return err
		}
	}
}

// mayBecome reports whether next may take the place of the present content of the cluster: this is
// one of the records that the change has seen, sealed again or brought from a machine, or the same
// login with older tokens.
func (l *sharedLogin) mayBecome(next *auth.Record, seen ...*auth.Record) bool {
	if slices.ContainsFunc(seen, func(r *auth.Record) bool { return isSame(r, l.record) }) {
		return true
	}
	return hasTokens(next) && hasTokens(l.record) && l.record.LoginID == next.LoginID && next.ObtainedAt.After(l.record.ObtainedAt)
}

// isSame reports whether two records have the same tokens.
func isSame(a, b *auth.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Generation == b.Generation && a.LoginID == b.LoginID && a.AccessToken == b.AccessToken && a.RefreshToken == b.RefreshToken && slices.Equal(a.Granted, b.Granted)
}

func isSameDrop(a, b *droppedLogin) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.At.Equal(b.At)
}

// updateLocal changes the login of this machine, if it has one, so that a command without the
// running dowel uses no refresh token again.
func (s *storedLogins) updateLocal(ctx context.Context, key string, next *auth.Record) error {
	if own, err := s.loadLocal(ctx, key); own == nil || err != nil {
		return nil // it was not needed
	}
	return s.local.Update(ctx, key, func(*auth.Record) (*auth.Record, error) { return next, nil })
}
