package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what was typed and not read: it cannot be meant for a question that is asked now.
func flushInput(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH) // what was typed is an answer then, as on any terminal
}
