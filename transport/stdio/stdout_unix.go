//go:build unix

package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// divertStdout moves standard output to another descriptor, which it returns, and makes
// descriptor 1 standard error. Code that holds the old os.Stdout, C code and child processes then
// cannot corrupt the protocol.
func divertStdout() *os.File {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stdout
	}
	if err := unix.Dup2(2, 1); err != nil {
		unix.Close(fd)
		return os.Stdout
	}
	return os.NewFile(uintptr(fd), "stdout")
}
