//go:build !unix

package main

import "os/exec"

// clientCommand is what the suite runs in a shell.
const clientCommand = `.\client`

// ownGroup does nothing: cancelling the command ends it alone.
func ownGroup(*exec.Cmd) {}
