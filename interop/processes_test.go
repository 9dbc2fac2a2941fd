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

// markName is the variable that marks the processes of one run. A marked process is found by its
// environment, regardless of its name and of its current parent.
const markName = "DOWEL_INTEROP_MARK"

// grace is how long the processes of a run may outlive dowel. On an idle machine they end within a
// second.
const grace = time.Minute

// newMark returns a new mark, and ends the processes with it after the test.
func newMark(t *testing.T) string {
	t.Helper()
	mark := markName + "=" + rand.Text()
	t.Cleanup(func() {
		for _, pid := range markedProcesses(t, mark) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				t.Errorf("ending process %d that was left behind: %v", pid, err)
			}
		}
	})
	return mark
}

// withMark returns a command that runs the server command with the mark in its environment.
func withMark(mark string, command ...string) []string {
	return append([]string{"env", mark}, command...)
}

// markedProcesses returns the ids of the running processes with a mark.
func markedProcesses(t *testing.T, mark string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatalf("looking for processes in /proc: %d found, %v", len(files), err)
	}
	var pids []int
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile, or belongs to another user
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

// expectNoneLeft fails the test if a marked process runs longer than grace.
func expectNoneLeft(t *testing.T, mark string) {
	t.Helper()
	var left []int
	for end := time.Now().Add(grace); ; time.Sleep(20 * time.Millisecond) {
		if left = markedProcesses(t, mark); len(left) == 0 {
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

// describe returns a process's id and command line.
func describe(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d: %s", pid, strings.ReplaceAll(string(line), "\x00", " "))
}
