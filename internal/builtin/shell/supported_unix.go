//go:build unix

package shell

import (
	"os"
	"syscall"
)

const supported = true

// interruptGroup does the same as Ctrl-C on a terminal. It also continues stopped processes, which
// would not notice the signal otherwise.
func interruptGroup(pgid int) {
	if pgid <= 1 {
		return // the group is unknown; kill(-1) would reach all processes of the user
	}
	_ = syscall.Kill(-pgid, syscall.SIGINT)
	_ = syscall.Kill(-pgid, syscall.SIGCONT)
}

// exitStatus returns the status that a shell would show for a process that ended.
func exitStatus(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
