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

// busyLimit bounds how long this process waits until others, such as readers in a loop or a virus
// scanner, no longer use a file.
const busyLimit = 5 * time.Second

// renameFile retries while readers have the file open: Windows cannot replace such a file.
func renameFile(from, to string) error {
	for start := time.Now(); ; time.Sleep(lockRetry) {
		if err := os.Rename(from, to); !isBusy(err) || time.Since(start) > busyLimit {
			return err
		}
	}
}

// readSharedFile retries while another process replaces the file: Windows cannot open such a file.
func readSharedFile(path string) ([]byte, error) {
	for start := time.Now(); ; time.Sleep(lockRetry) {
		content, err := os.ReadFile(path)
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) || time.Since(start) > busyLimit {
			return content, err
		}
	}
}

// isBusy reports whether err may say that another process uses the file or removes it.
func isBusy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
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
func isBeingRemoved(err error) bool { return isBusy(err) }
