//go:build !windows

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// keepOwner gives f the owner of the file that it will replace, if permitted. A file edited by root
// stays the user's.
func keepOwner(f *os.File, info fs.FileInfo) {
	if old, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(old.Uid), int(old.Gid))
	}
}

// isOwn reports whether a file belongs to this user.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

func renameFile(from, to string) error { return os.Rename(from, to) }

func readSharedFile(path string) ([]byte, error) { return os.ReadFile(path) }

// syncFolder syncs a rename to disk. Errors are ignored: the content is safe in any case, and only
// a power failure could bring the old name back.
func syncFolder(path string) {
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// releaseLock removes the lock file while it is locked, so that no other process holds it.
func releaseLock(l *flock.Flock, path string) {
	_ = os.Remove(path)
	_ = l.Close()
}

// isBeingRemoved is false: the error exists only on Windows.
func isBeingRemoved(error) bool { return false }
