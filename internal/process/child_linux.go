package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent makes the kernel send SIGTERM to a child if its parent is killed between the exec
// of the child and its registration with the watcher, about 100 µs later. The remaining gap is a
// child that ignores SIGTERM or starts others within that time. Closing it too would take a shell
// that holds each child back until it is registered. That would cost the child environment
// variables, if their names are not identifiers or begin with DYLD_, and Start its exact errors.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// groupRuns reports whether a process group has a member that is not a zombie. Zombies must not
// count: if the first process of a container does not reap orphans, for example because it is
// this program, they would keep the group alive forever.
func groupRuns(pgid int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return true
	}
	seen := false
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		state, group := readStat(name)
		if group != 0 {
			seen = true
		}
		if group == pgid && state != 'Z' && state != 'X' {
			return true
		}
	}
	return !seen // an empty /proc proves nothing
}

// readStat returns the state and the process group from /proc/PID/stat. It counts the fields
// after the name, because the name may contain anything.
func readStat(pid string) (state byte, group int) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 3 {
		return 0, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return fields[0][0], group
}
