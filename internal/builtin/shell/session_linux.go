package shell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// endSession kills the rest of a session after its leader's process group has ended: background
// processes of a shell with set -m, which have their own process groups. While one of them lives,
// the system does not reuse the session's id.
func endSession(id int) {
	for range 10 { // the next round kills processes that were forked during this one
		left := sessionMembers(id)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// sessionMembers returns the members of a session that are not zombies.
func sessionMembers(id int) (all []int) {
	for pid, p := range listProcesses() {
		if p.session == id && p.state != 'Z' && p.state != 'X' {
			all = append(all, pid)
		}
	}
	return all
}

// groupChildren returns the children of a process in its group, each as its id and program, so that
// a child that executes another program counts as a new one.
func groupChildren(leader int) (all []string) {
	for pid, p := range listProcesses() {
		if p.parent == leader && p.group == leader && p.state != 'Z' {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			all = append(all, fmt.Sprintf("%d %s", pid, line))
		}
	}
	return all
}

// leaderWithin returns the id of a descendant that leads a process group, or 0.
func leaderWithin(ancestor int) int {
	all := listProcesses()
	for pid, p := range all {
		if p.group != pid {
			continue
		}
		for up, ok := all[p.parent]; ok; up, ok = all[up.parent] {
			if up.pid == ancestor {
				return pid
			}
		}
	}
	return 0
}

// processInfo is a line of the process table.
type processInfo struct {
	state                       byte
	pid, parent, group, session int
}

// listProcesses returns all processes by id.
func listProcesses() map[int]processInfo {
	all := map[int]processInfo{}
	proc, err := os.Open("/proc")
	if err != nil {
		return all
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// The program's name, in brackets, may contain any character.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 4 {
			continue
		}
		p := processInfo{state: fields[0][0], pid: pid}
		for i, field := range []*int{&p.parent, &p.group, &p.session} {
			*field, _ = strconv.Atoi(string(fields[i+1]))
		}
		all[pid] = p
	}
	return all
}
