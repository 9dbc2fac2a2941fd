//go:build unix

package stdio

import (
	"io"
	"os"
	"syscall"
	"time"
)

// standardInput returns standard input as a reader whose Close interrupts Read. A pipe or socket
// uses the runtime's poller. A terminal or file may be shared with other processes and is read by
// [readInGoroutine].
func standardInput() io.ReadCloser {
	if os.Stdin.SetReadDeadline(time.Time{}) == nil {
		return os.Stdin // a parent, such as Node, made it non-blocking: the poller has it already
	}
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 || syscall.SetNonblock(0, true) != nil {
		return readInGoroutine(os.Stdin)
	}
	return &pollableFile{os.NewFile(0, "stdin")}
}

// pollableFile is a pipe or socket that Close sets back to blocking, because other processes may
// share it.
type pollableFile struct{ *os.File }

func (p *pollableFile) Close() error {
	_ = syscall.SetNonblock(0, false)
	return p.File.Close()
}
