//go:build unix

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

func parse(line string, pid *int) (int, error) { return fmt.Sscanf(line, "escaped %d", pid) }

// plainSelf starts the test binary in a role by plain means, so that what is tested is not also
// what ends it.
func plainSelf(t *testing.T, role string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	c := self(role, args...)
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), roleKey+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, out
}

func TestNothingOutlivesAKilledParent(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd, out := plainSelf(t, "parent")
			pids := pidsUntilUp(t, out, 4 /* trees */ +2+3+1+1+1)
			for _, pid := range pids {
				if !runs(pid) {
					t.Errorf("process %d does not run: this test shows nothing of it", pid)
				}
			}
			cmd.Process.Signal(sig)
			allGone(t, pids)
			// The watcher and the children are the only ones that could hold this pipe; its end is
			// the proof.
			if _, err := io.ReadAll(out); err != nil {
				t.Error(err)
			}
		})
	}
}

// The watcher lives through what ends others: a terminal's signals, and a hand that kills it is met
// by another watcher.
func TestWatcherIsHardToKill(t *testing.T) {
	polltest.NoLeaks(t)
	tree := trees["two sleepers"]
	child := start(t, sh(tree.script))
	pids := append(pidsUntilUp(t, child, tree.starts), child.PID())
	first := watcherPID(t)
	awaitTraps(t, first)
	orphanWatcher.mu.Lock()
	orphanWatcher.shell.began = time.Now().Add(-time.Minute) // it counts as one that works
	orphanWatcher.mu.Unlock()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		syscall.Kill(first, sig)
	}
	if watcherPID(t) != first || !runs(first) {
		t.Fatal("the watcher did not live through the signals")
	}
	syscall.Kill(first, syscall.SIGKILL)
	polltest.Until(t, "a second watcher", func() bool { second := watcherPID(t); return second != first && second != 0 })
	for _, pid := range pids {
		if !runs(pid) {
			t.Errorf("process %d was ended with the watcher", pid)
		}
	}
	// The new one knows the old groups: it ends them when its pipe does.
	orphanWatcher.mu.Lock()
	orphanWatcher.shell.pipe.Close()
	orphanWatcher.mu.Unlock()
	allGone(t, pids)
	child.Close()
}

// awaitTraps waits until the watcher ignores the signals that end other processes. A signal that is
// ignored is discarded at once.
func awaitTraps(t *testing.T, pid int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	polltest.Until(t, "a watcher that ignores signals", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(status), "SigIgn:")
		mask, _ := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
			if mask&(1<<(sig-1)) == 0 {
				return false
			}
		}
		return true
	})
}

func watcherPID(t *testing.T) int {
	t.Helper()
	orphanWatcher.mu.Lock()
	defer orphanWatcher.mu.Unlock()
	if orphanWatcher.shell == nil {
		return 0
	}
	return orphanWatcher.shell.proc.Pid
}

func TestWatcherIsToldOfEachGroup(t *testing.T) {
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := watcher{children: 9, shell: &watchShell{pipe: pipe}}
	w.addGroup(5, false)
	w.addGroup(7, false)
	w.addTree("AB", false)
	w.removeTree(5, "")
	w.removeUnstarted("", false)
	w.removeTree(7, "AB")
	w.addTree("CD", true)
	w.addGroup(8, true)
	w.addTree("", true)
	w.removeUnstarted("", true)
	pipe.Close()
	want := "+ 5\n+ 7\nm AB\n- 5\n- 7\nu AB\nr 0\nm CD\n+ 8\np 8\ns 0\nr 0\ns 0\n"
	if got, _ := io.ReadAll(r); string(got) != want || w.children != 8 || len(w.groups) != 1 || w.starting != 0 {
		t.Errorf("told %q; held %d, groups %v", got, w.children, w.groups)
	}
}

// The script does the same in every sh there is.
func TestWatchScript(t *testing.T) {
	for _, name := range []string{"sh", "dash", "bash", "ksh", "mksh", "yash", "busybox"} {
		t.Run(name, func(t *testing.T) {
			path := installed(t, name)
			args := []string{"-c", watchScript}
			if name == "busybox" {
				args = append([]string{"sh"}, args...)
			}
			watch := exec.Command(path, args...)
			watch.Env = []string{"PATH=/usr/bin:/bin"}
			tell, err := watch.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			watch.Stdout, watch.Stderr = &said, &said
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			groups := make([]*exec.Cmd, 5)
			for i := range groups {
				groups[i] = exec.Command("/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 1000; done")
				if i%2 == 0 {
					groups[i] = exec.Command("/bin/sh", "-c", "echo up; sleep 1000; exit")
				}
				groups[i].SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				out, err := groups[i].StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := groups[i].Start(); err != nil {
					t.Fatal(err)
				}
				pidsUntilUp(t, out, 0) // the trap is set
				fmt.Fprintf(tell, "+ %d\n", groups[i].Process.Pid)
			}
			for _, i := range []int{0, 3, 3} { // one of each kind is let go, and one line is too many
				fmt.Fprintf(tell, "- %d\n", groups[i].Process.Pid)
			}
			tell.Close()
			begun := time.Now()
			polltest.Within(t, func() { watch.Wait() })
			if took := time.Since(begun); took < 400*time.Millisecond {
				t.Errorf("the script ended all groups after %v, want at least 400 ms", took)
			}
			for i, g := range groups {
				spared := i == 0 || i == 3
				if spared && !runs(g.Process.Pid) {
					t.Errorf("group %d was let go and ended all the same", i)
				}
				want := map[bool]syscall.Signal{true: syscall.SIGKILL, false: syscall.SIGTERM}[i%2 == 1]
				if got := endedBy(g, spared); !spared && got != want {
					t.Errorf("group %d was ended by %v, want %v", i, got, want)
				}
			}
			// A group that ended in time is missed by kill, which says so; nothing else may be
			// wrong.
			for line := range strings.Lines(said.String()) {
				if !strings.Contains(strings.ToLower(line), "no such process") {
					t.Errorf("the script said %q", line)
				}
			}
		})
	}
}

// endedBy reaps a process, which it ends itself if need be (then the signal is 0) or if asked to.
func endedBy(cmd *exec.Cmd, now bool) syscall.Signal {
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	if now || !waitWithin(done, polltest.Limit) {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		return 0
	}
	return cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
}
