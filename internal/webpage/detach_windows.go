package webpage

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detachCommand keeps Ctrl-C in the console of this process away from cmd, which outlives this
// process anyway.
func detachCommand(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
