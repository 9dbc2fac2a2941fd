package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/windows"
)

// keepOwner does nothing: a file inherits its access rules from the folder.
func keepOwner(*os.File, fs.FileInfo) {}

// isOwn is true: access rules, not owners, decide what this user may remove.
func isOwn(fs.FileInfo) bool { return true }

// renameFile retries while readers have the file open: Windows cannot replace such a file.
func renameFile(from, to string) error {
	var err error
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		err = os.Rename(from, to)
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

// syncFolder does nothing: Windows cannot sync folders.
func syncFolder(string) {}

// releaseLock closes the lock file first, since Windows cannot remove an open file. The file stays
// if another process has it open.
func releaseLock(l *flock.Flock, path string) {
	_ = l.Close()
	_ = os.Remove(path)
}

// isBeingRemoved reports whether err comes from opening a lock file while another process removes
// it.
func isBeingRemoved(err error) bool { return errors.Is(err, windows.ERROR_ACCESS_DENIED) }
