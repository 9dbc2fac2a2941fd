//go:build unix && !linux

package stdio

import "syscall"

// dieWithParent does nothing: this system has no parent-death signal. A child whose parent is killed in the
// microseconds between fork and registration with the watcher sees only the end of its stdin.
func dieWithParent(*syscall.SysProcAttr) {}

func groupRuns(int) bool { return true }
