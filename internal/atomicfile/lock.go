package atomicfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// defaultLockWait is long for a configuration file: a holder reads, edits and writes a few
// kilobytes.
const defaultLockWait = 5 * time.Second

// lockRetry is the interval between attempts to take a held lock.
const lockRetry = 5 * time.Millisecond

// lockFile waits for target's lock.
func lockFile(target string, o Options) (unlock func(), err error) {
	wait := cmp.Or(o.lockWait, defaultLockWait)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	folder, name := filepath.Split(target)
	path := filepath.Join(folder, "."+name+".lock")
	unlock, err = acquireLock(ctx, path)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		besideErr := err
		if path, err = fallbackLockPath(target, o.lockFolder); err == nil {
			unlock, err = acquireLock(ctx, path)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("cannot lock %s: %w", target, errors.Join(besideErr, err))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (it has held %s for %v): try again, or end that process", target, ErrLocked, path, wait)
	}
	return unlock, nil
}

// fallbackLockPath returns the path of a lock file that cannot be created beside target.
func fallbackLockPath(target, folder string) (string, error) {
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(cache, "dowel", "locks")
	}
	return filepath.Join(folder, Hash([]byte(target))[:32]+".lock"), os.MkdirAll(folder, 0o700)
}

// tryLockWait is long enough for a holder that only looks whether the lock is held.
const tryLockWait = 100 * time.Millisecond

// TryLock locks a file that serves as a lock alone, and creates it if it does not exist. ok is
// false if another holder has it, in this process or in another one. unlock removes the file.
func TryLock(path string) (unlock func(), ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), tryLockWait)
	defer cancel()
	unlock, err = acquireLock(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, false, nil
	}
	return unlock, err == nil, err
}

// acquireLock locks the file at path. Unlocking removes the lock file, which would otherwise stay
// in the user's project. A process may therefore get the lock of a file that was just removed,
// while another one locks a new file at path. So after locking, acquireLock checks that path still
// names the locked file, and tries again if not.
func acquireLock(ctx context.Context, path string) (unlock func(), err error) {
	for pardons := 20; ; {
		l := flock.New(path, flock.SetPermissions(0o600))
		if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
			if pardons--; pardons > 0 && isBeingRemoved(err) {
				time.Sleep(lockRetry)
				continue
			}
			return nil, err
		}
		if isCurrentLock(l, path) {
			return func() { releaseLock(l, path) }, nil
		}
		_ = l.Close()
	}
}

// isCurrentLock reports whether path still names the locked file. Another process may have removed
// it between opening and locking.
func isCurrentLock(l *flock.Flock, path string) bool {
	mine, err := l.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// maxLinks limits the symbolic links on a path, as on Linux.
const maxLinks = 40

// resolveLinks follows symbolic links to the file itself, which need not exist.
func resolveLinks(path string) (string, error) {
	target, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		link, err := os.Readlink(target)
		if err != nil { // not a link, or missing
			return physicalPath(target), nil
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(physicalPath(filepath.Dir(target)), link) // ".." in a link is relative to the folder's physical path
		}
		target = link
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}

// physicalPath resolves the links in path's folder as far as it exists. A file thus has one lock,
// whichever path leads to it.
func physicalPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(physicalPath(parent), filepath.Base(path))
}
