//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	// nonblock keeps a pipe that has taken a file's place from being waited for.
	nonblock = syscall.O_NONBLOCK
	// directory makes the system refuse to open anything but a folder.
	directory = syscall.O_DIRECTORY
)

func notFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// keepOwner gives a file the owner of another one, where the system lets it.
func keepOwner(f *os.File, of fs.FileInfo) {
	if owner, ok := of.Sys().(*syscall.Stat_t); ok && (int(owner.Uid) != os.Getuid() || int(owner.Gid) != os.Getgid()) {
		_ = f.Chown(int(owner.Uid), int(owner.Gid)) // as far as it is allowed
	}
}
