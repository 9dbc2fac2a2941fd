package desktop

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// errInUse is the error of listening at a port that another program uses.
const errInUse = windows.WSAEADDRINUSE

// separateProcess keeps Ctrl-C in the console of this process away from cmd.
func separateProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
