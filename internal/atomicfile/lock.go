package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// defaultLockWait is long for a file of configuration: whoever holds the lock reads, edits and writes a few kilobytes.
const defaultLockWait = 5 * time.Second

// lockRetry is how often a held lock is tried.
const lockRetry = 5 * time.Millisecond

// lock waits for target's lock.
func lock(target string, o Options) (unlock func(), err error) {
	wait := or(o.LockWait, defaultLockWait)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	folder, name := filepath.Split(target)
	path := filepath.Join(folder, "."+name+".lock")
	unlock, err = acquire(ctx, path)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		besideErr := err
		if path, err = distant(target, o.LockFolder); err == nil {
			unlock, err = acquire(ctx, path)
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

// distant returns where the lock file goes that cannot be beside target.
func distant(target, folder string) (string, error) {
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(cache, "dowel", "locks")
	}
	return filepath.Join(folder, Hash([]byte(target))[:32]+".lock"), os.MkdirAll(folder, 0o700)
}

// acquire locks the file at path. Unlocking removes it: a lock file left behind would sit in people's projects. So whoever
// got the lock looks whether the file is still the one at path; if not, a third one may have locked a new file there.
func acquire(ctx context.Context, path string) (unlock func(), err error) {
	for pardons := 20; ; {
		l := flock.New(path, flock.SetPermissions(0o600))
		if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
			if pardons--; pardons > 0 && removing(err) {
				time.Sleep(lockRetry)
				continue
			}
			return nil, err
		}
		if current(l, path) {
			return func() { release(l, path) }, nil
		}
		_ = l.Close()
	}
}

func current(l *flock.Flock, path string) bool {
	mine, err := l.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// maxLinks is how many symbolic links one path may lead through, as on Linux.
const maxLinks = 40

// resolve returns the path of the file itself, which may not exist, where path is a symbolic link.
func resolve(path string) (string, error) {
	target, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		link, err := os.Readlink(target)
		if err != nil { // no link, or nothing there
			return physical(target), nil
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(physical(filepath.Dir(target)), link) // ".." in it goes up from where its folder really is
		}
		target = link
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}

// physical resolves the links in path's folder as far as it exists, so that a file has one lock whatever the way to it.
func physical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(physical(parent), filepath.Base(path))
}
