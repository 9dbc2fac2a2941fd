package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// flushInput drops what was typed and not read: it cannot be meant for a question that is asked now.
func flushInput(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd())) // what was typed is an answer then, as on any terminal
}
