//go:build unix

package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/client"
)

func TestShellEnds(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		for _, c := range []struct {
			command string
			status  int
			output  string
			how     string
		}{
			{"echo bye; exit 3 2>/dev/null", 3, "bye\n", "exit status 3"},
			{"exec sh -c 'echo other; exit 4'", 4, "other\n", "exit status 4"},
			{"echo on; kill -KILL $$", 137, "on\n", "signal: killed"},
			{"set -e; echo on; false; echo no", 1, "on\n", "exit status 1"},
			{"sleep 1000 & echo left; exec true", 0, "left\n", "exit status 0"},
		} {
			s.do("umask 077")
			old := s.process()
			r := s.do(c.command)
			if r.State != Ended || r.ExitStatus == nil || *r.ExitStatus != c.status || !strings.Contains(r.Output, c.output) || !strings.Contains(r.Note, "the shell has ended ("+c.how+")") {
				s.Errorf("%q: got %s", c.command, show(r))
			}
			if left := group(s.T, old.child.PID()); len(left) > 0 {
				s.Errorf("%q leaves %v", c.command, left)
			}
			s.fail(args{"shell": s.handle, "command": "echo on"}, "the command was not run: the shell has ended ("+c.how+")")
			if r := s.do(""); r.State != Ended || *r.ExitStatus != c.status || r.Output != "" {
				s.Errorf("%q: later, got %s", c.command, show(r))
			}
			r = s.call(args{"shell": s.handle, "restart": true})
			if r.State != Idle || r.Shell != s.handle || r.Folder != s.s.opts.Dir {
				s.Errorf("restarted: got %s", show(r))
			}
		}
	})
}

// Output that a shell printed before it ended between calls is not lost.
func TestShellEndsBetweenCalls(t *testing.T) {
	s := open(t, Options{}).session()
	sh := s.process()
	s.call(args{"shell": s.handle, "command": "echo last words; exec sh -c 'exit 6'", "timeout": 0})
	<-sh.exited
	r := s.do("")
	_, err := s.try(s.Context(), args{"shell": s.handle, "command": "echo"})
	if r.State != Ended || *r.ExitStatus != 6 || err == nil {
		t.Errorf("got %s, %v", show(r), err)
	}
	other := s.fixture.session()
	sh = other.process()
	other.call(args{"shell": other.handle, "command": "echo last words; exec sh -c 'exit 6'", "timeout": 0})
	<-sh.exited
	if _, err := other.try(t.Context(), args{"shell": other.handle, "command": "echo"}); err == nil ||
		!strings.Contains(err.Error(), "exit status 6") {
		t.Errorf("got the error %v", err)
	}
}

// offspring prints the ids of the processes that it starts: a plain child, one that ignores
// signals, one that is stopped, a pipeline, and a child's child.
const offspring = `sleep 1000 & echo $!
sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' & echo $!
sleep 1000 & kill -STOP $!; echo $!
sleep 1000 | sleep 1000 & echo $!
(sh -c 'sleep 1000 & echo $!; wait') &
nohup sleep 1000 & echo $!
echo up
`

func TestCloseEndsEverything(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		s.do("exec 2>/dev/null\n" + offspring)
		s.do(offspring + "sleep 0.01")
		text := offspring + "wait"
		if runtime.GOOS == "linux" && s.s.program.bash {
			text = "set -m; sleep 1000 & echo $!; set +m\n" + text // in a group of its own
		}
		r := s.call(args{"shell": s.handle, "command": "exec 2>/dev/null\n" + text, "timeout": 0})
		got, r := s.until("up\n", r.Output)
		if r.State != Running {
			s.Fatalf("got %s", show(r))
		}
		var pids []int
		for line := range strings.Lines(got) {
			var pid int
			if _, err := fmt.Sscanf(line, "%d\n", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
		if len(pids) < 5 {
			s.Fatalf("got %q", got)
		}
		if err := s.s.Close(); err != nil {
			s.Fatal(err)
		}
		for _, pid := range pids {
			if runs(pid) {
				s.Errorf("%d of %v is left", pid, pids)
			}
		}
		s.fail(args{"shell": s.handle, "command": "echo"}, "closing")
	})
}

const roleKey = "DOWEL_SHELL_TEST_ROLE"

// playParent opens a shell, prints the ids of everything in it, and never ends by itself.
func playParent(role string) {
	s, err := New(Options{Sandbox: role == "sandbox"})
	if err != nil {
		panic(err)
	}
	c, err := client.Dial(context.Background(), s, nil)
	if err != nil {
		panic(err)
	}
	text := "echo $$\nexec 2>/dev/null\n" + offspring
	if role == "sandbox" {
		text = "exec 2>/dev/null; sleep 1000 & setsid sleep 1000 & echo up"
	}
	output := ""
	for call := (args{"command": text + "\nwait", "timeout": 1}); !strings.Contains(output, "up\n"); {
		r, err := client.Call[Result](context.Background(), c, "run", call)
		if err != nil {
			panic(err)
		}
		output += r.Output
		call = args{"shell": r.Shell, "timeout": 1}
	}
	for _, sh := range s.shells {
		fmt.Println(sh.child.PID())
	}
	fmt.Println(output)
	fmt.Println("over")
	select {}
}

// parent starts the test binary as a parent, and returns its output.
func parent(t *testing.T, role string) (*exec.Cmd, io.Reader, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleKey+"="+role)
	cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var text strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "over" {
		text.WriteString(lines.Text() + "\n")
	}
	return cmd, out, text.String()
}

func TestNothingOutlivesAKilledParent(t *testing.T) {
	cmd, out, text := parent(t, "plain")
	before, _, ok := strings.Cut(text, "up\n")
	if !ok {
		t.Fatalf("got %q", text)
	}
	var pids []int
	for line := range strings.Lines(before) {
		var pid int
		if _, err := fmt.Sscanf(line, "%d\n", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) < 7 {
		t.Fatalf("got %q", text)
	}
	pgid := pids[0]
	for _, pid := range pids {
		if !runs(pid) {
			t.Errorf("%d of %v does not run: this test shows nothing of it", pid, pids)
		}
	}
	cmd.Process.Signal(syscall.SIGKILL)
	allGone(t, append(pids, group(t, pgid)...))
	io.Copy(io.Discard, out) // all holders of the pipe have ended
}
