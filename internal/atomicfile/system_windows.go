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

// rename waits for readers: a file that is open without the right to delete it cannot be replaced.
func rename(from, to string) error {
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

// syncFolder does nothing: folders cannot be synced.
func syncFolder(string) {}

// release closes the lock file first: an open one cannot be removed, and if somebody else has it open it stays.
func release(l *flock.Flock, path string) {
	_ = l.Close()
	_ = os.Remove(path)
}

// removing reports the error of opening a lock file that somebody is removing at that moment.
func removing(err error) bool { return errors.Is(err, windows.ERROR_ACCESS_DENIED) }
