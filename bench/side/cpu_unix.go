//go:build unix

package side

import (
	"syscall"
	"time"
)

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for other arguments only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
