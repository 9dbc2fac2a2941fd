//go:build !unix

package shell

import "os"

const supported = false

func interruptGroup(int) {}

func exitStatus(state *os.ProcessState) int { return state.ExitCode() }
