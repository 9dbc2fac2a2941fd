package modelkeys

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// eraseEnviron overwrites variables in the memory that /proc/PID/environ shows. The kernel put them
// there at the start of the process. The Go runtime has its own copies. If the memory cannot be
// written, the variables stay visible to processes of the same user.
func eraseEnviron(names []string) {
	start, end, ok := environRange()
	if !ok {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	environ := make([]byte, end-start)
	if _, err := memory.ReadAt(environ, start); err != nil {
		return
	}
	at := start
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if name, _, _ := strings.Cut(string(entry), "="); slices.Contains(names, name) {
			_, _ = memory.WriteAt(make([]byte, len(entry)), at)
		}
		at += int64(len(entry)) + 1
	}
	clear(environ)
}

// environRange returns the addresses of the environment in this process, fields 50 and 51 of
// /proc/self/stat.
func environRange() (start, end int64, ok bool) {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3 on
	if len(fields) < 49 {
		return 0, 0, false
	}
	start, err = strconv.ParseInt(fields[47], 10, 64)
	end, e := strconv.ParseInt(fields[48], 10, 64)
	return start, end, err == nil && e == nil && 0 < start && start < end
}
