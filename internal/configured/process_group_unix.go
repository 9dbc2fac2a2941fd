//go:build unix

package configured

import (
	"os/exec"
	"syscall"
)

// useProcessGroup makes the end of a command kill all processes that it has started.
func useProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
