package up

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// backgroundAttributes starts the process without a console, so that neither Ctrl-C nor the end of
// the terminal reaches it.
func backgroundAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}
