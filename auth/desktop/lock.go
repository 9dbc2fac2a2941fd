package desktop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is the interval between two attempts to take a lock that another process holds.
const lockRetry = 10 * time.Millisecond

// processLock excludes the goroutines of this process. Only its holder asks for the lock of the
// file, so that goroutines wait without asking again and again.
type processLock chan struct{}

// lockRecord takes the lock of a record in this process and among processes. The file of the lock
// stays: a process that removed it could let two others lock different files.
func (s *Store) lockRecord(ctx context.Context, id string) (unlock func(), err error) {
	s.mu.Lock()
	here := s.locks[id]
	if here == nil {
		here = make(processLock, 1)
		s.locks[id] = here
	}
	s.mu.Unlock()
	select {
	case here <- struct{}{}:
	case <-ctx.Done():
		return nil, lockError(ctx, id)
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		<-here
		return nil, fmt.Errorf("logins cannot be kept: %w", err)
	}
	l := flock.New(filepath.Join(s.folder, id+".lock"), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		_ = l.Close()
		<-here
		if ctx.Err() != nil {
			return nil, lockError(ctx, id)
		}
		return nil, fmt.Errorf("logins cannot be locked: %w", err)
	}
	return func() {
		_ = l.Close()
		<-here
	}, nil
}

func lockError(ctx context.Context, id string) error {
	return fmt.Errorf("another process changes the same login (lock %s.lock): %w", id, context.Cause(ctx))
}
