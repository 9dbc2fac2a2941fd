//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing, because this system has no parent-death signal. If this process is
// killed between the fork of a child and its registration with the watcher, a few microseconds
// later, the child only sees the end of its stdin.
func dieWithParent(*syscall.SysProcAttr) {}

func groupRuns(int) bool { return true }
