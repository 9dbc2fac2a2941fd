//go:build !windows

package watch

import (
	"errors"
	"syscall"
)

func notFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
