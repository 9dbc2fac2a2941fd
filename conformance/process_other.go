//go:build !unix

package main

import "os/exec"

// clientCommand is the shell command with which the suite starts the client.
const clientCommand = `.\client`

// ownGroup does nothing: cancelling the command ends it alone.
func ownGroup(*exec.Cmd) {}
