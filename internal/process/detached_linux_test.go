package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"golang.org/x/sys/unix"
)

// startDaemons starts a child that starts processes in other groups, and returns their ids.
func startDaemons(t *testing.T, c Command) (*Child, []int) {
	t.Helper()
	child := start(t, c)
	pids := pidsUntilUp(t, child, daemonCount)
	t.Cleanup(func() {
		for _, pid := range running(pids) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	for _, pid := range pids {
		polltest.Until(t, "a process outside of the group", func() bool { return !isInGroup(pid, child.PID()) })
		if !runs(pid) {
			t.Errorf("process %d does not run: this test shows nothing of it", pid)
		}
	}
	return child, pids
}

func TestDetachedProcessesEnd(t *testing.T) {
	for name, last := range map[string]string{"closed": "wait", "the parent leaves": "exit", "the parent is killed": "kill -KILL $$"} {
		t.Run(name, func(t *testing.T) {
			polltest.NoLeaks(t)
			c := sh(daemons + "read -r _;" + last)
			c.Grace, c.KillAfter = 50*time.Millisecond, 300*time.Millisecond
			child, pids := startDaemons(t, c)
			if name != "closed" {
				io.WriteString(child, "go on\n")
				polltest.Within(t, func() { io.Copy(io.Discard, child) })
				allGone(t, pids)
			}
			polltest.Within(t, func() {
				if err := child.Close(); err != nil {
					t.Error(err)
				}
			})
			noneRuns(t, pids)
		})
	}
}

// A detached process has the time to clean up, as the processes of the group have.
func TestDetachedProcessesCanCleanUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	exe, _ := os.Executable()
	child := start(t, Command{
		Path: "/bin/sh", Args: []string{"-c", `setsid "$0" </dev/null & wait`, exe},
		Env: map[string]string{roleKey: "cleaner", "LOG": file}, Grace: 10 * time.Millisecond, KillAfter: time.Hour,
	})
	pidsUntilUp(t, child, 0)
	child.Close()
	if got, _ := os.ReadFile(file); string(got) != "cleaned up, 0 more" {
		t.Errorf("the detached process wrote %q", got)
	}
}

func TestDetachedProcessesOfOthersStay(t *testing.T) {
	c := sh(daemons + "wait")
	c.Grace, c.KillAfter = 50*time.Millisecond, 300*time.Millisecond
	one, ended := startDaemons(t, c)
	other, stay := startDaemons(t, c)
	one.Close()
	noneRuns(t, ended)
	if left := running(stay); len(left) != len(stay) {
		t.Errorf("of %v only %v run", stay, left)
	}
	other.Close()
	noneRuns(t, stay)
}

func TestKeepDetached(t *testing.T) {
	c := sh(daemons + "wait")
	c.Grace, c.KillAfter, c.KeepDetached = 50*time.Millisecond, 300*time.Millisecond, true
	child, pids := startDaemons(t, c)
	child.Close()
	if left := running(pids); len(left) != len(pids) {
		t.Errorf("of %v only %v run", pids, left)
	}
}

func TestDetachedProcessesOfAKilledParent(t *testing.T) {
	for _, keep := range []string{"", "yes"} {
		t.Run("keep "+keep, func(t *testing.T) {
			t.Setenv("KEEP", keep)
			cmd, out := plainSelf(t, "daemons")
			pids := pidsUntilUp(t, out, 1+daemonCount)
			defer func() {
				for _, pid := range running(pids) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}()
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
			if keep == "" {
				allGone(t, pids)
				return
			}
			allGone(t, pids[:1]) // the child itself, by its group
			if left := running(pids[1:]); len(left) != 4 {
				t.Errorf("of %v only %v run", pids[1:], left)
			}
		})
	}
}

// A program with children of its own, such as another dowel, is in the tree with all of them,
// however it ends and whatever it keeps.
func TestDetachedProcessesOfANestedParent(t *testing.T) {
	for _, keep := range []string{"", "yes"} {
		for _, way := range []string{"closed", "killed"} {
			t.Run(way+" "+keep, func(t *testing.T) {
				c := self("daemons")
				c.Env["KEEP"] = keep
				c.CleanEnv = keep != "" // the mark of the outer tree reaches all of the inner one too
				c.Grace, c.KillAfter = 50*time.Millisecond, 300*time.Millisecond
				child := start(t, c)
				pids := pidsUntilUp(t, child, 1+daemonCount)
				if way == "killed" {
					syscall.Kill(child.PID(), syscall.SIGKILL)
				}
				child.Close()
				allGone(t, pids)
			})
		}
	}
}

// A child that may keep its detached processes lets its own children keep them, but not theirs.
func TestKeepDetachedOfANestedParent(t *testing.T) {
	t.Setenv(markKey, "OUTER")
	mark, env := markTree(nil, true)
	if want := []string{markKey + "=OUTER:" + keepMark}; mark != "" || !slices.Equal(env, want) {
		t.Errorf("got %q and %q, want no mark and %q", mark, env, want)
	}
	t.Setenv(markKey, "OUTER:"+keepMark)
	mark, env = markTree(nil, false)
	if want := []string{markKey + "=OUTER"}; mark != "" || !slices.Equal(env, want) {
		t.Errorf("got %q and %q, want no mark and %q", mark, env, want)
	}
	t.Setenv(markKey, keepMark)
	if mark, env = markTree([]string{"A=B"}, false); mark != "" || !slices.Equal(env, []string{"A=B", markKey + "="}) {
		t.Errorf("got %q and %q, want no mark and an empty variable", mark, env)
	}
	t.Setenv(markKey, "")
	if mark, env = markTree(nil, false); mark == "" || !slices.Equal(env, []string{markKey + "=" + mark}) {
		t.Errorf("got %q and %q, want a new mark", mark, env)
	}

	c := self("daemons")
	c.Grace, c.KillAfter, c.KeepDetached = 50*time.Millisecond, 300*time.Millisecond, true
	child := start(t, c)
	pids := pidsUntilUp(t, child, 1+daemonCount)
	defer func() {
		for _, pid := range running(pids) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	child.Close()
	allGone(t, pids[:1]) // the watcher of the child's own child may still be ending it
	if left := running(pids[1:]); len(left) != 4 {
		t.Errorf("of %v only %v run, want all", pids[1:], left)
	}
}

// A process is found by its mark and its user.
func TestScanMarked(t *testing.T) {
	child := start(t, Command{Path: "sleep", Args: []string{"1000"}})
	proc, err := os.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	uid := uint32(os.Geteuid())
	polltest.Until(t, "the program", func() bool { // a process has no environment while it starts a program
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(child.PID()) + "/cmdline")
		return strings.HasSuffix(string(line), "sleep\x001000\x00")
	})
	for _, tt := range []struct {
		mark string
		uid  uint32
		want scanResult
	}{
		{child.tree.mark, uid, carriesMark},
		{newMark(), uid, other},
		{child.tree.mark, uid + 1, other},
	} {
		scan := procScan{proc: proc, uid: tt.uid, mark: []byte(tt.mark)}
		p, got := scan.look(strconv.Itoa(child.PID()), child.PID())
		if got == carriesMark {
			procFolders{p}.release()
		}
		if got != tt.want {
			t.Errorf("mark of the child %v, own user %v: got %v, want %v", tt.mark == child.tree.mark, tt.uid == uid, got, tt.want)
		}
	}
}

// fakeProc writes the files of processes as they are in /proc.
type fakeProc struct {
	t      *testing.T
	folder string
}

func (p fakeProc) put(pid int, name, content string) {
	p.t.Helper()
	folder := filepath.Join(p.folder, strconv.Itoa(pid))
	whole := filepath.Join(p.t.TempDir(), name)
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(whole, []byte(content), 0o600), os.Rename(whole, filepath.Join(folder, name))); err != nil {
		p.t.Error(err)
	}
}

// putWithoutEnvironment writes a process with a state and flags of the kernel.
func (p fakeProc) putWithoutEnvironment(pid int, state string, flags uint64) {
	p.put(pid, "environ", "")
	p.put(pid, "cmdline", "")
	p.put(pid, "stat", fmt.Sprintf("%d (x) %s 1 1 1 0 -1 %d 0 0", pid, state, flags))
}

// A process that is starting a program is found although that takes long. Processes that never get
// an environment do not delay the scan.
func TestFindMarkedAwaitsStartingProcesses(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	proc.putWithoutEnvironment(5000001, "Z", 0)
	proc.putWithoutEnvironment(5000002, "S", 0x00200040) // a thread of the kernel
	proc.putWithoutEnvironment(5000003, "D", 0x4)        // exits
	proc.put(5000004, "environ", "A=B\x00")
	mark := newMark()
	polltest.Within(t, func() {
		if found := findMarkedIn(proc.folder, mark, 2*polltest.Limit); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	})
	proc.putWithoutEnvironment(5000005, "R", 0)
	polltest.Within(t, func() { // it never starts
		if found := findMarkedIn(proc.folder, mark, time.Millisecond); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	})
	started := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() {
		defer close(started)
		proc.put(5000005, "environ", markKey+"="+mark+"\x00")
	})
	found := findMarkedIn(proc.folder, mark, 2*polltest.Limit)
	found.release()
	<-started
	if len(found) != 1 || found[0].pid != 5000005 {
		t.Errorf("found %v, want the process that was starting", found)
	}
}

// The folder of an ended process names no other process, not even one with the same id.
func TestFolderOfAnEndedProcess(t *testing.T) {
	child := start(t, Command{Path: "sleep", Args: []string{"1000"}})
	var found procFolders
	polltest.Until(t, "the process", func() bool { // which has no environment while it starts a program
		found = findMarked(child.tree.mark)
		return len(found) > 0
	})
	defer found.release()
	if len(found) != 1 || found[0].pid != child.PID() || !found[0].runs() {
		t.Fatalf("found %v, want the process %d", found, child.PID())
	}
	child.Close()
	if found[0].runs() {
		t.Error("the ended process runs")
	}
	if err := unix.PidfdSendSignal(found[0].fd, 0, nil, 0); !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOSYS) {
		t.Errorf("a signal to the ended process: %v", err)
	}
	if _, err := readAt(found[0].fd, "environ", new([]byte)); err == nil || errors.Is(err, fs.ErrPermission) {
		t.Errorf("the environment of the ended process: %v", err)
	}
	again := findMarked(child.tree.mark)
	again.release()
	if len(again) > 0 {
		t.Errorf("found %v", again)
	}
}

// BenchmarkFindMarked measures the scan at the end of each child. 500 processes run.
func BenchmarkFindMarked(b *testing.B) {
	child, err := sh("i=0; while [ $i -lt 500 ]; do sleep 1000 & i=$((i+1)); done; echo up; wait").Start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer child.Close()
	child.Read(make([]byte, 3))
	mark := newMark()
	began := processorTime(b)
	for b.Loop() {
		if found := findMarked(mark); len(found) > 0 {
			b.Fatal("found a process without the mark")
		}
	}
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
}

func processorTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
