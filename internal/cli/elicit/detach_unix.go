//go:build unix

package elicit

import (
	"os/exec"
	"syscall"
)

// detach lets a command live on when this process ends: its terminal hangs up on all others that it has started.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
