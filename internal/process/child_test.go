//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"golang.org/x/sys/unix"
)

func TestEchoAndClose(t *testing.T) {
	polltest.NoLeaks(t)
	child := start(t, self("echo"))
	if _, err := io.WriteString(child, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(child).ReadString('\n'); line != "hello\n" || err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	if err := child.ExitError(); err != nil {
		t.Errorf("while it runs: ExitError = %v", err)
	}
	polltest.Within(t, func() {
		if err := child.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := child.Wait(); err != nil {
		t.Errorf("Wait after Close = %v", err)
	}
	var exit *ExitError
	if err := child.ExitError(); !errors.As(err, &exit) || exit.ExitCode() != 0 || !exit.Closed {
		t.Errorf("ExitError = %#v", err)
	}
	if _, err := child.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if _, err := child.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

func TestCloseWriteLeavesTheAnswerReadable(t *testing.T) {
	child := start(t, self("echo"))
	io.WriteString(child, "last words")
	if err := errors.Join(child.CloseWrite(), child.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(child); string(out) != "last words" || err != nil {
		t.Errorf("read %q, %v", out, err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

func TestExitStatusAndStderrInErrors(t *testing.T) {
	polltest.NoLeaks(t)
	for _, tt := range []struct {
		name, script, want string
		code               int
	}{
		{"status", `echo one >&2; echo two >&2; exit 3`, "/bin/sh ended: exit status 3; its last words on stderr:\n\tone\n\ttwo", 3},
		{"success is an end too", `exit 0`, "/bin/sh ended: exit status 0", 0},
		{"signal", `kill -KILL $$`, "/bin/sh ended: signal: killed", -1},
		{"terminal codes", `printf '\033[31mred\033[0m\007 \033]0;title\007plain\n' >&2; exit 1`, "/bin/sh ended: exit status 1; its last words on stderr:\n\tred plain", 1},
		{"only the last lines", `for i in 1 2 3 4 5 6 7 8 9 a b c; do echo $i >&2; done; exit 1`,
			"/bin/sh ended: exit status 1; its last words on stderr:\n\t3\n\t4\n\t5\n\t6\n\t7\n\t8\n\t9\n\ta\n\tb\n\tc", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			child := start(t, sh(tt.script))
			<-child.Exited()
			var exit *ExitError
			if !errors.As(child.ExitError(), &exit) {
				t.Fatalf("ExitError = %v", child.ExitError())
			}
			if exit.Error() != tt.want || exit.ExitCode() != tt.code || exit.Closed {
				t.Errorf("got %q, code %d, closed %v\nwant %q", exit, exit.ExitCode(), exit.Closed, tt.want)
			}
			if err := child.Wait(); (err == nil) != (tt.code == 0) {
				t.Errorf("Wait = %v", err)
			}
			if _, err := child.Write(make([]byte, 1<<20)); !errors.As(err, &exit) {
				t.Errorf("Write to a dead process: %v", err)
			}
		})
	}
}

// A process that holds stderr delays the news of the exit. Write waits for the news.
func TestWriteToADeadProcessWithAHeldStderr(t *testing.T) {
	polltest.NoLeaks(t)
	child := start(t, sh(`sleep 1000 <&- >&- & read -r _; exit 3`))
	for range 2 { // the first Write fails while the process ends
		_, err := child.Write(append([]byte("\n"), make([]byte, 1<<20)...))
		if exit, ok := errors.AsType[*ExitError](err); !ok || exit.ExitCode() != 3 {
			t.Errorf("Write returned %v, want exit status 3", err)
		}
	}
}

func TestWriteToAClosedStdin(t *testing.T) {
	c := sh(`exec <&-; echo closed; sleep 1000`)
	c.Grace = -1
	child := start(t, c)
	if line, err := bufio.NewReader(child).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	if _, err := child.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) || child.ExitError() != nil {
		t.Errorf("Write returned %v, want EPIPE of a process that runs", err)
	}
}

// The exit waits for stderr to be read if no process holds the pipe, although that takes long.
func TestExitAwaitsStderr(t *testing.T) {
	t.Parallel()
	for _, isHeld := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if !isHeld {
			w.Close()
		}
		exited := make(chan struct{})
		close(exited)
		child := &Child{tree: &tree{exited: exited}, stderr: newStderrLog(defaultRing, nil), exited: make(chan struct{})}
		quiet := make(chan struct{})
		delay := 3 * drainTime
		if isHeld {
			delay = 2 * polltest.Limit
		}
		late := time.AfterFunc(delay, func() {
			io.WriteString(child.stderr, "last words\n")
			close(quiet)
		})
		defer late.Stop()
		polltest.Within(t, func() { child.publishExit(r, quiet, false) })
		if want := map[bool]string{false: "last words"}[isHeld]; child.exit.Stderr != want {
			t.Errorf("stderr held %v: the exit has %q, want %q", isHeld, child.exit.Stderr, want)
		}
	}
}

func TestOutputOfADeadProcessStaysReadable(t *testing.T) {
	child := start(t, sh(`i=0; while [ $i -lt 2000 ]; do echo 12345678901234567890; i=$((i+1)); done`))
	<-child.Exited()
	if err := child.stdout.SetReadDeadline(time.Unix(1, 0)); err != nil { // as if drainTime had passed
		t.Fatal(err)
	}
	if out, err := io.ReadAll(child); len(out) != 2000*21 || err != nil {
		t.Errorf("read %d bytes, %v", len(out), err)
	}
}

func TestCloseEndsTheWholeTree(t *testing.T) {
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			polltest.NoLeaks(t)
			c := sh(tree.script)
			c.Grace = 50 * time.Millisecond
			if name == "deaf to TERM" {
				c.KillAfter = 300 * time.Millisecond // for the others SIGTERM is enough
			}
			child := start(t, c)
			pids := append(pidsUntilUp(t, child, tree.starts), child.PID())
			polltest.Within(t, func() {
				if err := child.Close(); err != nil {
					t.Error(err)
				}
			})
			noneRuns(t, pids)
		})
	}
}

func TestWhatAProcessLeavesRunningIsEnded(t *testing.T) {
	polltest.NoLeaks(t)
	tree := trees["leader leaves"]
	child := start(t, sh(tree.script))
	pids := pidsUntilUp(t, child, tree.starts)
	polltest.Within(t, func() { // the sleeper holds stdout and stderr open
		if rest, err := io.ReadAll(child); len(rest) > 0 || err != nil {
			t.Errorf("read %q, %v", rest, err)
		}
	})
	allGone(t, pids)
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// A grandchild gets its SIGTERM once, and the time to act on it, though its parent leaves at once.
func TestGrandchildrenCanCleanUp(t *testing.T) {
	exe, _ := os.Executable()
	for name, last := range map[string]string{"closed": "wait", "the parent leaves": "read -r _"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			child := start(t, Command{
				Path: "/bin/sh", Args: []string{"-c", `"$0" </dev/null & ` + last, exe},
				Env: map[string]string{roleKey: "cleaner", "LOG": file}, Grace: 10 * time.Millisecond, KillAfter: time.Hour,
			})
			pidsUntilUp(t, child, 0)
			if name == "closed" {
				child.Close()
			} else {
				child.CloseWrite()
				io.ReadAll(child)
			}
			if got, _ := os.ReadFile(file); string(got) != "cleaned up, 0 more" {
				t.Errorf("the grandchild wrote %q", got)
			}
		})
	}
}

func TestKeptGrandchildHoldsUpNobody(t *testing.T) {
	polltest.NoLeaks(t)
	exe, _ := os.Executable()
	c := Command{
		Path: "/bin/sh", Args: []string{"-c", `"$0" & read -r _`, exe}, Env: map[string]string{roleKey: "escaped"},
		Grace: 100 * time.Millisecond, KeepDetached: true,
	}
	child := start(t, c)
	lines := bufio.NewReader(child)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err, child.StderrTail(5))
	}
	var pid int
	if _, err := parse(line, &pid); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	child.CloseWrite() // the direct child exits; the escaped one keeps stdout and stderr
	polltest.Within(t, func() {
		if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
			t.Errorf("read %q, %v", rest, err)
		}
	})
	polltest.Within(t, func() { child.Close() })
	if !runs(pid) {
		t.Error("the process was ended")
	}
}

func TestChildIgnoringEverything(t *testing.T) {
	polltest.NoLeaks(t)
	c := self("stubborn")
	c.Grace, c.KillAfter = 200*time.Millisecond, 300*time.Millisecond
	child := start(t, c)
	bufio.NewReader(child).ReadString('\n')
	begun := time.Now()
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < c.Grace+c.KillAfter {
		t.Errorf("Close killed the child after %v, want at least %v", took, c.Grace+c.KillAfter)
	}
	var exit *ExitError
	if !errors.As(child.ExitError(), &exit) || exit.State.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("ExitError = %v", child.ExitError())
	}
	if err := child.Wait(); err != nil {
		t.Errorf("Wait after Close = %v", err)
	}
}

// A child that still writes while it is being closed is neither stuck in a full pipe nor cut off.
func TestCloseReadsOn(t *testing.T) {
	polltest.NoLeaks(t)
	c := self("talker")
	c.Grace = 2 * polltest.Limit
	child := start(t, c)
	polltest.Within(t, func() { child.Close() })
	var exit *ExitError
	if !errors.As(child.ExitError(), &exit) || exit.ExitCode() != 0 || exit.Stderr != "left in peace" {
		t.Errorf("ExitError = %v", child.ExitError())
	}
}

func TestCloseInterruptsReadAndWrite(t *testing.T) {
	polltest.NoLeaks(t)
	c := self("stubborn") // reads nothing
	c.Grace = 2 * polltest.Limit
	child := start(t, c)
	bufio.NewReader(child).ReadString('\n')
	var users sync.WaitGroup
	users.Go(func() {
		if _, err := child.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read: %v", err)
		}
	})
	users.Go(func() {
		if _, err := child.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write: %v", err)
		}
	})
	polltest.Until(t, "a blocked Read and a blocked Write", func() bool {
		return polltest.Blocked("(*Child).Read") == 1 && polltest.Blocked("(*Child).Write") == 1
	})
	var closers sync.WaitGroup
	for range 4 {
		closers.Go(func() {
			if err := child.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	polltest.Within(t, users.Wait)
	if !runs(child.PID()) {
		t.Error("Read and Write returned only after the process had ended")
	}
	syscall.Kill(child.PID(), syscall.SIGKILL)
	closers.Wait()
}

func TestEnvironment(t *testing.T) {
	t.Setenv("STDIO_TEST_INHERITED", "from the parent")
	t.Setenv("STDIO_TEST_REPLACED", "old")
	script := `echo "$STDIO_TEST_INHERITED|$STDIO_TEST_REPLACED|$STDIO_TEST_ADDED|${HOME:+home}${PATH:+path}"`
	c := sh(script)
	c.Env = map[string]string{"STDIO_TEST_REPLACED": "new", "STDIO_TEST_ADDED": "a=b c"}
	for _, tt := range []struct {
		clean bool
		want  string
	}{
		{false, "from the parent|new|a=b c|homepath\n"},
		{true, "|new|a=b c|homepath\n"},
	} {
		c.CleanEnv = tt.clean
		if out, _ := io.ReadAll(start(t, c)); string(out) != tt.want {
			t.Errorf("clean %v: %q, want %q", tt.clean, out, tt.want)
		}
	}
	for _, bad := range []map[string]string{{"": "x"}, {"A=B": "x"}, {"A": "x\x00"}} {
		c.Env = bad
		if _, err := c.Start(t.Context()); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestDir(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeScript(t, filepath.Join(dir, "here"), `pwd; echo "$PWD"`)
	out, err := io.ReadAll(start(t, Command{Path: "./here", Dir: dir}))
	if want := dir + "\n" + dir + "\n"; string(out) != want || err != nil {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

func TestStartDoesNotEndWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	child, err := self("echo").Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	cancel()
	if waitWithin(child.Exited(), 100*time.Millisecond) {
		t.Fatal(child.ExitError())
	}
	if _, err := self("echo").Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a cancelled context: %v", err)
	}
}

// The tree has no terminal and is not in our process group.
func TestChildIsASessionOfItsOwn(t *testing.T) {
	child := start(t, self("echo"))
	group, err := syscall.Getpgid(child.PID())
	session, err2 := unix.Getsid(child.PID())
	if err := errors.Join(err, err2); err != nil || group != child.PID() || session != child.PID() {
		t.Errorf("group %d and session %d of process %d, %v", group, session, child.PID(), err)
	}
}

func TestHundredStartsLeakNothing(t *testing.T) {
	polltest.NoLeaks(t)
	for range 100 {
		child, err := self("echo").Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(child, "x\n")
		bufio.NewReader(child).ReadString('\n')
		if err := child.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConcurrentStarts(t *testing.T) {
	polltest.NoLeaks(t)
	var starts sync.WaitGroup
	for range 16 {
		starts.Go(func() {
			child, err := sh(`cat`).Start(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer child.Close()
			io.WriteString(child, "x\n")
			if line, err := bufio.NewReader(child).ReadString('\n'); line != "x\n" {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
	starts.Wait()
	orphanWatcher.mu.Lock()
	defer orphanWatcher.mu.Unlock()
	if orphanWatcher.children != 0 || len(orphanWatcher.groups) != 0 || orphanWatcher.shell != nil {
		t.Errorf("the watcher still holds %d children, groups %v", orphanWatcher.children, orphanWatcher.groups)
	}
}

func writeScript(t *testing.T, file, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// The error of a trace that is longer than the kept lines stays, in the lines and on its own.
func TestExitErrorKeepsCrash(t *testing.T) {
	t.Parallel()
	script := `echo "Error: boom: API key missing" >&2
i=0; while [ $i -lt 30 ]; do echo "    at f (/srv/x.js:$i:7)" >&2; i=$((i+1)); done
echo >&2; echo "Node.js v22.23.3" >&2; exit 1`
	child, err := Command{Path: "/bin/sh", Args: []string{"-c", script}}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	_ = child.Wait()
	exit := child.exit
	if exit.Stderr != "Error: boom: API key missing" || CrashMessage(exit) != "Error: boom: API key missing" {
		t.Errorf("%q, %q", exit.Stderr, CrashMessage(exit))
	}
}
