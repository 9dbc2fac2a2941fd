//go:build unix

package up

import "syscall"

// backgroundAttributes puts the process into a session of its own, so that neither Ctrl-C nor the
// end of the terminal reaches it.
func backgroundAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
