//go:build !linux

package daemon

// portOwner is only known on Linux.
func portOwner(string) (name string, pid int) { return "", 0 }
