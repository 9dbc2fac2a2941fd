//go:build unix

package stdio

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// divertStdout moves standard output to another descriptor, which it returns, and makes
// descriptor 1 standard error. Code that holds the old os.Stdout, C code and child processes then
// cannot corrupt the protocol.
func divertStdout() io.WriteCloser {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return &sharedOutput{os.Stdout}
	}
	if err := unix.Dup2(2, 1); err != nil {
		unix.Close(fd)
		return &sharedOutput{os.Stdout}
	}
	return &sharedOutput{os.NewFile(uintptr(fd), "stdout")}
}

// sharedOutput is an output that another process may make non-blocking while it is in use. A parent
// on Node that inherits the output does so as soon as it asks whether the output is a terminal.
type sharedOutput struct{ *os.File }

// Write implements [io.Writer]. If the output turns out to be non-blocking, it becomes blocking
// again.
func (o *sharedOutput) Write(p []byte) (n int, err error) {
	for {
		written, err := o.File.Write(p[n:])
		n += written
		if !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
		if err := unix.SetNonblock(int(o.Fd()), false); err != nil {
			return n, err
		}
	}
}
