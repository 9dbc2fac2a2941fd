//go:build unix

package shell

import (
	"os"
	"syscall"
)

const supported = true

// interruptGroup does what Ctrl-C does on a terminal. Whoever was stopped goes on, since it would not notice otherwise.
func interruptGroup(pgid int) {
	if pgid <= 1 {
		return // not known; to -1 it would go to everybody
	}
	_ = syscall.Kill(-pgid, syscall.SIGINT)
	_ = syscall.Kill(-pgid, syscall.SIGCONT)
}

// exitStatus is what a shell would show of a process that ended.
func exitStatus(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
