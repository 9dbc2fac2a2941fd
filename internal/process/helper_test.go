//go:build unix

package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// roleKey makes the test binary, started once more, play a part instead of running tests.
const roleKey = "DOWEL_PROCESS_TEST_ROLE"

var roles = map[string]func(){
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },
	"stubborn": func() { // ignores everything that can be ignored
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	},
	"flood": func() {
		line := strings.Repeat("x", 1023) + "\n"
		for range 4096 {
			io.WriteString(os.Stderr, line)
		}
		fmt.Println("done")
		io.Copy(io.Discard, os.Stdin)
	},
	"talker": func() { // says more than a pipe holds once its stdin is closed
		io.Copy(io.Discard, os.Stdin)
		if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
			os.Exit(9)
		}
		fmt.Fprintln(os.Stderr, "left in peace")
	},
	"cleaner": func() { // takes its time after SIGTERM, and tells a file of it
		terms := make(chan os.Signal, 9)
		signal.Notify(terms, syscall.SIGTERM)
		fmt.Println("up")
		<-terms
		time.Sleep(300 * time.Millisecond)
		os.WriteFile(os.Getenv("LOG"), fmt.Appendf(nil, "cleaned up, %d more", len(terms)), 0o644)
	},
	"escaped":    func() { holdStreams() },
	"parent":     playParent,
	"daemons":    playDaemons,
	"suicide":    func() { playSuicide(`trap '' TERM HUP; sleep 1000; sleep 1000`, time.Hour) },
	"suicide-at": func() { d, _ := time.ParseDuration(os.Args[1]); playSuicide(`exec sleep 1000`, d) },
}

func init() {
	if role, ok := roles[os.Getenv(roleKey)]; ok {
		role()
		os.Exit(0)
	}
}

// holdStreams is a daemon: a process that left its tree but not the pipes. It ends by itself after
// a while.
func holdStreams() {
	if _, err := syscall.Setsid(); err != nil {
		os.Exit(1)
	}
	fmt.Println("escaped", os.Getpid())
	time.Sleep(2 * polltest.Limit)
}

// scriptTree is a script that prints the ids of everything that it starts, and "up", one in a line.
// The lines come in any order.
type scriptTree struct {
	script string
	starts int // number of ids
}

var trees = map[string]scriptTree{
	"two sleepers":  {`sleep 1000 & echo $!; sleep 1000 & echo $!; echo up; wait`, 2},
	"nested":        {`sh -c 'sh -c "sleep 1000 & echo \$!; wait" & echo $!; echo up; wait' & echo $!; wait`, 3},
	"deaf to TERM":  {`trap '' TERM HUP; sleep 1000 & echo $!; echo up; while :; do wait; sleep 1; done`, 1},
	"leader leaves": {`sleep 1000 </dev/null & echo $!; echo up`, 1},
	"stopped":       {`sleep 1000 & echo $!; kill -STOP $!; echo up; wait`, 1},
}

// daemons is a script that starts processes that leave its process group, and prints their ids as a
// scriptTree does. A process may print its id before it leaves.
const daemons = `
setsid sleep 1000 & echo $!
setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1000; done' &
setsid sh -c 'setsid sh -c "sleep 1000 & echo \$!" & wait'
(setsid sh -c 'kill -STOP $$; sleep 1000' & echo $!)
echo up
`

// daemonCount is the number of processes that daemons starts.
const daemonCount = 4

// playParent starts a few trees and prints all process ids, its watcher's included. It never ends
// by itself.
func playParent() {
	for name, tree := range trees {
		if name == "leader leaves" {
			continue // would be ended at once
		}
		child, err := Command{Path: "/bin/sh", Args: []string{"-c", tree.script}, Env: map[string]string{roleKey: ""}}.Start(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println(child.PID())
		pids, err := readPIDs(child, tree.starts)
		if err != nil {
			panic(err)
		}
		for _, pid := range pids {
			fmt.Println(pid)
		}
	}
	orphanWatcher.mu.Lock()
	fmt.Println(orphanWatcher.shell.proc.Pid)
	orphanWatcher.mu.Unlock()
	fmt.Println("up")
	time.Sleep(time.Hour)
}

// playDaemons starts the child of a server with daemons, which are kept if KEEP is set, and prints
// the ids of all processes but its watcher once they have left the child's group. It ends with its
// stdin.
func playDaemons() {
	child, err := Command{
		Path: "/bin/sh", Args: []string{"-c", daemons + "wait"}, Env: map[string]string{roleKey: ""},
		KeepDetached: os.Getenv("KEEP") != "",
	}.Start(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(child.PID())
	pids, err := readPIDs(child, daemonCount)
	if err != nil {
		panic(err)
	}
	for _, pid := range pids {
		for isInGroup(pid, child.PID()) {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(pid)
	}
	fmt.Println("up")
	io.Copy(io.Discard, os.Stdin)
	child.Close()
}

// playSuicide kills itself after d, or right after Start has returned.
func playSuicide(script string, d time.Duration) {
	time.AfterFunc(d, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	if _, err := (Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: map[string]string{roleKey: ""}}).Start(context.Background()); err != nil {
		panic(err)
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// self is a Command for the test binary in a role.
func self(role string, args ...string) Command {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Command{Path: exe, Args: args, Env: map[string]string{roleKey: role, "GORACE": "atexit_sleep_ms=0"}}
}

func sh(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}}
}

// start starts c, and closes it at the test's end.
func start(t *testing.T, c Command) *Child {
	t.Helper()
	child, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Close() })
	return child
}

// isInGroup reports whether the process exists and is in the process group.
func isInGroup(pid, group int) bool {
	got, err := syscall.Getpgid(pid)
	return err == nil && got == group
}

// readPIDs reads what a scriptTree prints that starts n processes.
func readPIDs(r io.Reader, n int) (pids []int, err error) {
	isUp := false
	lines := bufio.NewScanner(r)
	for (!isUp || len(pids) < n) && lines.Scan() {
		if lines.Text() == "up" {
			isUp = true
			continue
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			return pids, err
		}
		pids = append(pids, pid)
	}
	if !isUp || len(pids) != n {
		return pids, fmt.Errorf("the script printed the processes %v, want %d and up; error %v", pids, n, lines.Err())
	}
	return pids, nil
}

// pidsUntilUp is readPIDs for a test.
func pidsUntilUp(t *testing.T, r io.Reader, n int) []int {
	t.Helper()
	pids, err := readPIDs(r, n)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// allGone waits until none of the processes runs.
func allGone(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("no processes to look at")
	}
	t.Cleanup(func() {
		for _, pid := range running(pids) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	polltest.Until(t, fmt.Sprintf("the end of the processes %v", pids), func() bool { return len(running(pids)) == 0 })
}

// noneRuns fails the test if one of the processes runs.
func noneRuns(t *testing.T, pids []int) {
	t.Helper()
	if left := running(pids); len(pids) == 0 || len(left) > 0 {
		t.Errorf("the processes %v of %v still run", left, pids)
	}
}

func running(pids []int) (left []int) {
	for _, pid := range pids {
		if runs(pid) {
			left = append(left, pid)
		}
	}
	return left
}

// runs reports whether a process exists and is more than a zombie.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	after := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return err == nil && !strings.HasPrefix(after, " Z")
}

// installed is the path of a shell, without which the test is skipped.
func installed(t *testing.T, shell string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("the shell %s is not installed", shell)
	}
	return path
}
