//go:build !windows

package desktop

import (
	"os/exec"
	"syscall"
)

// errInUse is the error of listening at a port that another program uses.
const errInUse = syscall.EADDRINUSE

// separateProcess keeps Ctrl-C in the terminal of this process away from cmd.
func separateProcess(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
