package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops keys that were typed but not read: they cannot answer a question that has not
// been shown yet. If it fails, such keys count as the answer, as on any terminal.
func flushInput(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}

// readModes and writeModes are the requests for the modes of a terminal.
const readModes, writeModes = unix.TCGETS, unix.TCSETS
