//go:build !unix

package configured

import "os/exec"

// useProcessGroup does nothing on this system: the command's WaitDelay ends the wait for processes
// that it has started.
func useProcessGroup(*exec.Cmd) {}
