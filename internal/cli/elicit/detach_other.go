//go:build !unix

package elicit

import "os/exec"

// detachCommand lets a command live on when this process ends, which it does here anyway.
func detachCommand(*exec.Cmd) {}
