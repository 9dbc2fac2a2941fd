//go:build !windows

package desktop

import "syscall"

// errInUse is the error of listening at a port that another program uses.
const errInUse = syscall.EADDRINUSE
