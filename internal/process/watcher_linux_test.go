package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// A parent can die at any moment of Start: before the fork, between fork and exec, before the
// registration (when only the direct child is covered, by the kernel), and after it. Every process
// that it could have started is found by a variable in its environment.
func TestParentDiesDuringStart(t *testing.T) {
	const key = "STDIO_TEST_MARK"
	mark := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Setenv(key, mark)
	for i := range 60 {
		role, args := "suicide", []string(nil)
		if i%3 > 0 {
			role, args = "suicide-at", []string{(time.Duration(i) * 100 * time.Microsecond).String()}
		}
		cmd, out := plainSelf(t, role, args...)
		io.Copy(io.Discard, out)
		cmd.Wait()
	}
	t.Cleanup(func() {
		for _, pid := range marked(t, key+"="+mark) {
			what, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Errorf("process %d was left behind: %q", pid, what)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	polltest.Until(t, "the end of every process", func() bool { return len(marked(t, key+"="+mark)) == 0 })
}

// marked are the other processes with an environment that holds entry.
func marked(t *testing.T, entry string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatal("no processes to be seen", err)
	}
	var pids []int
	for _, file := range files {
		env, _ := os.ReadFile(file)
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if pid != os.Getpid() && strings.Contains(string(env), entry) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A zombie that nobody reaps does not count as a member of the group.
func TestGroupRuns(t *testing.T) {
	cmd, out := plainSelf(t, "echo")
	cmd.Process.Kill()
	io.Copy(io.Discard, out)
	own, err := syscall.Getpgid(0)
	if err != nil {
		t.Fatal(err)
	}
	if !groupRuns(own) {
		t.Error("this process's own group does not run")
	}
	child, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	polltest.Until(t, "a group without a running process", func() bool { return !groupRuns(child.Pid) })
	if syscall.Kill(-child.Pid, 0) != nil {
		t.Error("the zombie was reaped: this test shows nothing")
	}
}

// A program can be killed after the fork of a package runner and before the watcher knows its
// group. The runner still gets one SIGTERM and the time to undo an install.
func TestUnregisteredRunnerRollsBack(t *testing.T) {
	watch := exec.Command("/bin/sh", "-c", watchScript)
	watch.Env = []string{"PATH=/usr/bin:/bin"}
	pipe, err := watch.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	mark := newMark()
	runner := exec.Command("/bin/sh", "-c", `terms=0; trap 'terms=$((terms + 1))' TERM; echo up
		while [ $terms = 0 ]; do sleep 0.05; done
		sleep 1; sleep 0.5; echo "undone after $terms"`)
	runner.Env = append(os.Environ(), markKey+"="+mark)
	runner.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(pipe, "r 0\nm %s\n", mark)
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-runner.Process.Pid, syscall.SIGKILL); runner.Wait() })
	lines := bufio.NewScanner(stdout)
	lines.Scan() // the trap is set
	pipe.Close()
	if lines.Scan(); lines.Text() != "undone after 1" {
		t.Errorf("the runner said %q", lines.Text())
	}
	polltest.Within(t, func() { watch.Wait() })
}
