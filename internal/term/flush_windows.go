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

// hideKeys stops the echo of keys and passes each on by itself, not with its line. Ctrl-C stays a
// signal.
func hideKeys(terminal *os.File) (restore func(), err error) {
	return clearModes(terminal, windows.ENABLE_ECHO_INPUT|windows.ENABLE_LINE_INPUT)
}

// HideInput stops the echo of input until restore is called. Lines and Ctrl-C work as
// before.
func HideInput(terminal *os.File) (restore func(), err error) {
	return clearModes(terminal, windows.ENABLE_ECHO_INPUT)
}

// clearModes clears modes of a console. restore brings back the modes of before the call.
func clearModes(terminal *os.File, modes uint32) (restore func(), err error) {
	handle := windows.Handle(terminal.Fd())
	var before uint32
	if err := windows.GetConsoleMode(handle, &before); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(handle, before&^modes); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(handle, before) }, nil
}
