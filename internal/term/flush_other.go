//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package term

import (
	"errors"
	"os"
)

// flushInput does nothing: dropping unread keys is not implemented for this system.
func flushInput(*os.File) {}

// hideKeys is not implemented for this system.
func hideKeys(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }

// HideInput is not implemented for this system.
func HideInput(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }
