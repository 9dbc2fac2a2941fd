//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	// nonblock makes opening a pipe return at once. A pipe may have replaced a file after a check.
	nonblock = syscall.O_NONBLOCK
	// directory makes opening fail for everything except a folder.
	directory = syscall.O_DIRECTORY
)

func notFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// keepOwner gives a file the owner and group of another one, if the system allows it.
func keepOwner(f *os.File, of fs.FileInfo) {
	if owner, ok := of.Sys().(*syscall.Stat_t); ok && (int(owner.Uid) != os.Getuid() || int(owner.Gid) != os.Getgid()) {
		_ = f.Chown(int(owner.Uid), int(owner.Gid)) // usually only root may do this
	}
}
