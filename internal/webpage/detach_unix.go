//go:build unix

package webpage

import (
	"os/exec"
	"syscall"
)

// detachCommand lets a command outlive this process. In its own session, the command gets no hangup
// when the terminal closes.
func detachCommand(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
