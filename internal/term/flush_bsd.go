//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops keys that were typed but not read: they cannot answer a question that has not
// been shown yet. If it fails, such keys count as the answer, as on any terminal.
func flushInput(terminal *os.File) {
	const input = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, input)
}

// readModes and writeModes are the requests for the modes of a terminal.
const readModes, writeModes = unix.TIOCGETA, unix.TIOCSETA
