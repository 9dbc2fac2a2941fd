//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// clientCommand is what the suite runs in a shell. A client that hangs is ended after 30 seconds, but only if it is in the
// shell's place: otherwise it lives on, holds its pipes, and the suite waits for ever.
const clientCommand = "exec ./client"

// ownGroup makes a command the leader of a process group, so that cancelling it ends what it has started too, and Ctrl-C in
// a terminal reaches this program alone, which then ends them in order.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
