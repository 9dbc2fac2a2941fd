package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portOwner returns the program that listens at a TCP port. pid is 0 if it is unknown, as for a
// program of another user.
func portOwner(port string) (name string, pid int) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0
	}
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table) // without the table, the owner is unknown
		for line := range strings.Lines(string(text)) {
			const local, state, inode, listening = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if len(fields) > inode && strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", number)) && fields[state] == listening {
				sockets["socket:["+fields[inode]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return "", 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, file := range files {
		if target, err := os.Readlink(file); err != nil || !sockets[target] {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		pid, _ := strconv.Atoi(filepath.Base(process)) // digits only
		comm, _ := os.ReadFile(process + "/comm")
		return strings.TrimSpace(string(comm)), pid
	}
	return "", 0
}
