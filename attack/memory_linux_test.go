//go:build linux

package attack

import (
	"os"
	"syscall"
)

// maxRSS returns the most memory that a process had, in bytes.
func maxRSS(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
