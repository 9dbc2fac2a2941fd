//go:build unix

package elicit

import (
	"os/exec"
	"syscall"
)

// detachCommand lets a command live on when this process ends: its terminal hangs up on all others that it has started.
func detachCommand(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
