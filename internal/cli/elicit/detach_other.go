//go:build !unix

package elicit

import "os/exec"

// detach lets a command live on when this process ends, which it does here anyway.
func detach(*exec.Cmd) {}
