//go:build unix

package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// divertStdout returns standard output under another descriptor and makes its own one standard error, so that what holds
// os.Stdout already, or writes to descriptor 1 from C or a child, cannot break the stream either.
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
