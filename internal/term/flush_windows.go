package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// flushInput drops keys that were typed but not read: they cannot answer a question that has not
// been shown yet. If it fails, such keys count as the answer, as on any terminal.
func flushInput(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
}
