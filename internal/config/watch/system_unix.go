//go:build !windows

package watch

import (
	"errors"
	"syscall"
)

func isNotFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
