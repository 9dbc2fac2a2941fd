//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what was typed and not read: it cannot be meant for a question that is asked now.
func flushInput(terminal *os.File) {
	const input = 1                                                        // FREAD
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, input) // what was typed is an answer then, as on any terminal
}
