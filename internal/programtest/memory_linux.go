package programtest

import (
	"fmt"
	"os"
	"strings"
)

// ResidentMemory returns the resident memory of a process in bytes.
func ResidentMemory(pid int) (int64, error) { return readMemory(pid, "VmRSS:") }

// PeakMemory returns the most resident memory that a process has had, in bytes.
func PeakMemory(pid int) (int64, error) { return readMemory(pid, "VmHWM:") }

func readMemory(pid int, field string) (size int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), field)
	if _, err := fmt.Sscanf(rest, "%d kB", &size); err != nil {
		return 0, fmt.Errorf("%s of process %d: %w in %s", field, pid, err, status)
	}
	return size << 10, nil
}
