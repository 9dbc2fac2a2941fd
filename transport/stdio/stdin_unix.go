//go:build unix

package stdio

import (
	"io"
	"os"
	"syscall"
)

// standardInput returns stdin as something whose Read a Close interrupts. A pipe or socket, as clients give their
// servers, is put under the runtime's poller; a terminal or file, which others may share, is read by [pump].
func standardInput() io.ReadCloser {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 || syscall.SetNonblock(0, true) != nil {
		return pump(os.Stdin)
	}
	return &polled{os.NewFile(0, "stdin")}
}

// polled gives a shared pipe back as it was.
type polled struct{ *os.File }

func (p *polled) Close() error {
	_ = syscall.SetNonblock(0, false)
	return p.File.Close()
}
