//go:build !unix

package elicit

import "os/exec"

// detachCommand does nothing: on this system a command outlives its parent anyway.
func detachCommand(*exec.Cmd) {}
