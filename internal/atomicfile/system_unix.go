//go:build !windows

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// keepOwner gives f the owner of the file that it will replace, as far as we may: a file that root edits stays the user's.
func keepOwner(f *os.File, info fs.FileInfo) {
	if old, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(old.Uid), int(old.Gid))
	}
}

func rename(from, to string) error { return os.Rename(from, to) }

// syncFolder brings a rename to the disk. The new content is there in any case; whether a power cut brings the old name
// back is not worth an error.
func syncFolder(path string) {
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// release removes the lock file while the lock is held: nobody else can have locked it.
func release(l *flock.Flock, path string) {
	_ = os.Remove(path)
	_ = l.Close()
}

// removing is for Windows.
func removing(error) bool { return false }
