package stdio

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent narrows the gap between the exec of a child and its registration with the watcher, some 100 µs: a child
// whose parent is killed just then gets a SIGTERM from the kernel. What is left of the gap is a child that within that
// time has come to ignore SIGTERM or has started others. Closing it too would take a shell that waits in front of every
// child for a word to go on, and that would cost each child parts of its environment (names that are no identifiers,
// DYLD_ variables) and Start its exact errors.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// groupRuns reports whether a process group has a member that is not a zombie. Where the first process of a container
// does not reap orphans (when it is this program, for one), zombies would otherwise keep the group alive for ever.
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
		state, group := stat(name)
		if group != 0 {
			seen = true
		}
		if group == pgid && state != 'Z' && state != 'X' {
			return true
		}
	}
	return !seen // a /proc that shows nobody says nothing
}

// stat reads the state and group of a process: the 3rd and 5th field, counted behind the name, which may hold anything.
func stat(pid string) (state byte, group int) {
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
