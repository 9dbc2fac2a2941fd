package shell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// endSession kills what is left of a session whose leader's process group has ended: background processes of a shell in
// which set -m was on, each of which has a process group of its own. While there is one, the session's id is not given
// to anybody else.
func endSession(id int) {
	for range 10 { // one that forks in between is met by the next round
		left := members(id)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// members returns the members of a session that are not zombies.
func members(id int) (all []int) {
	for pid, p := range processes() {
		if p.session == id && p.state != 'Z' && p.state != 'X' {
			all = append(all, pid)
		}
	}
	return all
}

// children returns what the children of a process in its group are, each with its id. One that has been forked becomes
// another with its program.
func children(leader int) (all []string) {
	for pid, p := range processes() {
		if p.parent == leader && p.group == leader && p.state != 'Z' {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			all = append(all, fmt.Sprintf("%d %s", pid, line))
		}
	}
	return all
}

// leaderWithin returns the descendant of a process that leads a process group, 0 where there is none.
func leaderWithin(ancestor int) int {
	all := processes()
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

type process struct {
	state                       byte
	pid, parent, group, session int
}

// processes returns those that there are, by their ids.
func processes() map[int]process {
	all := map[int]process{}
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
		// The name in brackets may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 4 {
			continue
		}
		p := process{state: fields[0][0], pid: pid}
		for i, field := range []*int{&p.parent, &p.group, &p.session} {
			*field, _ = strconv.Atoi(string(fields[i+1]))
		}
		all[pid] = p
	}
	return all
}
