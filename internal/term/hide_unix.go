//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// hideKeys stops the echo of keys and passes each on by itself, not with its line. Ctrl-C stays a
// signal.
func hideKeys(terminal *os.File) (restore func(), err error) {
	return changeModes(terminal, func(modes *unix.Termios) {
		modes.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON
		modes.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR // keys arrive as in raw mode
		modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 1, 0
	})
}

// HideInput stops the echo of input until restore is called. Lines and Ctrl-C work as
// before.
func HideInput(terminal *os.File) (restore func(), err error) {
	return changeModes(terminal, func(modes *unix.Termios) { modes.Lflag &^= unix.ECHO | unix.ECHONL })
}

// changeModes changes the modes of a terminal. restore brings back the modes of before the call.
func changeModes(terminal *os.File, change func(*unix.Termios)) (restore func(), err error) {
	fd := int(terminal.Fd())
	modes, err := unix.IoctlGetTermios(fd, readModes)
	if err != nil {
		return nil, err
	}
	before := *modes
	change(modes)
	if err := unix.IoctlSetTermios(fd, writeModes, modes); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, writeModes, &before) }, nil
}
