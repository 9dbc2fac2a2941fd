package interop

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// markName is the variable that marks the processes of one run. A marked process is found by its environment, so by what
// it is and not by what it is called, and whoever its parent has become.
const markName = "DOWEL_INTEROP_MARK"

// grace is how long the processes of a run may outlive dowel. They end within a second, but not on a
// busy machine.
const grace = time.Minute

// newMark returns a mark that is not in use, and sees to it that no marked process outlives the test.
func newMark(t *testing.T) string {
	t.Helper()
	mark := markName + "=" + rand.Text()
	t.Cleanup(func() {
		for _, pid := range marked(t, mark) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				t.Errorf("ending process %d that was left behind: %v", pid, err)
			}
		}
	})
	return mark
}

// withMark marks a server command whatever environment it is started with.
func withMark(mark string, command ...string) []string {
	return append([]string{"env", mark}, command...)
}

// marked returns the living processes with a mark.
func marked(t *testing.T, mark string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatalf("looking for processes in /proc: %d found, %v", len(files), err)
	}
	var pids []int
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile, or belongs to somebody else
		}
		for _, variable := range bytes.Split(environ, []byte{0}) {
			if string(variable) == mark {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// noneLeft fails the test when a marked process is alive after the grace time.
func noneLeft(t *testing.T, mark string) {
	t.Helper()
	var left []int
	for end := time.Now().Add(grace); ; time.Sleep(20 * time.Millisecond) {
		if left = marked(t, mark); len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	for _, pid := range left {
		t.Errorf("left behind: %s", describe(pid))
	}
}

// describe names a process for an error message.
func describe(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d: %s", pid, strings.ReplaceAll(string(line), "\x00", " "))
}
