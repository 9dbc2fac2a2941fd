//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// clientCommand is the shell command with which the suite starts the client. The suite kills a
// client that hangs after 30 seconds, but reaches only the shell. With exec the client takes the
// shell's place; otherwise it would live on and keep its pipes open, and the suite would wait
// forever.
const clientCommand = "exec ./client"

// ownGroup makes a command the leader of a process group. Cancelling it then ends its children too,
// and Ctrl-C in a terminal reaches only this program, which ends them in order.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
