//go:build unix

package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

func TestInterrupt(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		s.wants("kept=1; cd /; f() { g; echo no; }; g() { while :; do sleep 0.001; done; echo no; }", 0, "")
		for _, command := range []string{
			"sleep 1000; echo no",
			"while :; do :; done; echo no",
			"while :; do sleep 0.001; done; echo no",
			"f; echo no",
			"(sleep 1000; echo no); echo no",
			"yes | cat >/dev/null; echo no",
			"sh -c 'sleep 1000; echo no'; echo no",
			"sleep 1000 & wait; echo no",
			"x=$(sleep 1000); echo no",
			"kill -STOP $$; sleep 1000; echo no",
		} {
			s.begin(command)
			if strings.Contains(command, "sleep 1000") && !strings.Contains(command, "STOP") {
				s.awaitSleep()
			}
			r := s.interrupt()
			if r.State != Idle || r.ExitStatus == nil || *r.ExitStatus == 0 || r.Note != "the command was interrupted" || strings.Contains(r.Output, "no\n") {
				s.Errorf("%q: got %s", command, show(r))
			}
			s.wants("echo $kept $PWD", 0, "1 /\n")
		}
		if r := s.do("^C"); r.State != Idle || r.Note != "no command is running" {
			s.Errorf("nothing to interrupt: got %s", show(r))
		}
		s.wants("echo after", 0, "after\n")
	})
}

// awaitSleep waits until the command runs sleep. A shell that is interrupted while it starts a
// program may continue with the next one, as on a terminal; [TestInterruptAtAnyMoment] covers these
// moments.
func (s session) awaitSleep() {
	s.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	leader := s.process().child.PID()
	polltest.Until(s.T, "the command runs sleep", func() bool {
		return slices.ContainsFunc(group(s.T, leader), func(pid int) bool {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			return string(name) == "sleep\n"
		})
	})
}

func TestInterruptIgnored(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		s.do("trap '' INT")
		s.begin("sleep 1000")
		r := s.call(args{"shell": s.handle, "command": "ctrl+c", "timeout": 0.05})
		if r.State != Running || !strings.Contains(r.Note, "has not reacted to the interrupt") {
			s.Errorf("got %s", show(r))
		}
		old := s.process()
		r = s.call(args{"shell": s.handle, "restart": true, "command": "echo new"})
		if r.Shell != s.handle || r.State != Idle || r.Output != "new\n" || !strings.Contains(r.Note, "was restarted") {
			s.Errorf("got %s", show(r))
		}
		if left := group(s.T, old.child.PID()); len(left) > 0 {
			s.Errorf("of the old shell %v is left", left)
		}
	})
}

// An interrupt can come at any moment: while the shell reads the command, runs it, reports its end,
// or has ended it. In none of these cases may the shell run a wrong command or lose the count.
func TestInterruptAtAnyMoment(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		canary := filepath.Join(s.s.opts.Dir, "canary")
		for i := range 15 {
			text := fmt.Sprintf("true %s; : '; touch %s; '", strings.Repeat("'x' ", 50*i), canary)
			var all sync.WaitGroup
			all.Go(func() { s.do(text) })
			for range i % 5 {
				all.Go(func() {
					time.Sleep(time.Duration(i*20) * time.Microsecond)
					s.call(args{"shell": s.handle, "command": "ctrl+c"})
				})
			}
			all.Wait()
			r := s.do("echo after")
			if r.State != Idle || r.ExitStatus == nil || *r.ExitStatus != 0 || !strings.HasSuffix(r.Output, "after\n") {
				s.Fatalf("round %d: got %s", i, show(r))
			}
		}
		if _, err := os.Stat(canary); err == nil {
			s.Error("a part of a command was run as a command")
		}
	})
}

// An interrupt that comes when the command ends may hit the shell while it reads the next one.
func TestInterruptAtTheEnd(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		canary := filepath.Join(s.s.opts.Dir, "canary")
		sh := s.process()
		end := func(c *command) {
			t.Helper()
			stuck := time.After(bound)
			for {
				select {
				case <-c.done:
					return
				case <-time.After(50 * time.Millisecond):
					sh.askAgain(c)
				case <-stuck:
					s.Fatal("the command has no end")
				}
			}
		}
		for i := range 40 {
			first, err := sh.runCommand(fmt.Sprintf("sleep 0.00%d", i%3))
			if err != nil {
				s.Fatal(err)
			}
			var interrupting sync.WaitGroup
			interrupting.Go(func() {
				time.Sleep(time.Duration(i*170%5000) * time.Microsecond)
				sh.interruptCommand(first)
			})
			end(first)
			second, err := sh.runCommand("true" + strings.Repeat(" ''", i%50) + "; : '; touch " + canary + "; '")
			if err != nil {
				s.Fatal(err)
			}
			end(second)
			interrupting.Wait()
			if second.status != 0 {
				s.Errorf("round %d: the next command's status is %d", i, second.status)
			}
		}
		if _, err := os.Stat(canary); err == nil {
			s.Error("a part of a command was run as a command")
		}
	})
}

// The shell may lose any beginning of an endLine. The rest must do no harm.
func TestEveryEndOfAnEndLine(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		sh := s.process()
		line := endLine(sh.token, 0)
		for i := range line {
			if _, err := sh.child.Write([]byte(line[i:] + againLine(sh.token, 0)[:4])); err != nil {
				s.Fatal(err)
			}
			sh.mu.Lock()
			sh.unsettled = true // as an interrupt leaves it
			sh.mu.Unlock()
			r := s.do("echo after")
			if r.State != Idle || !strings.HasSuffix(r.Output, "after\n") {
				s.Fatalf("after %q: got %s", line[i:], show(r))
			}
		}
	})
}

func TestCancelledCallInterrupts(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		if _, err := s.try(ctx, args{"shell": s.handle, "command": "echo begun; sleep 1000"}, client.CallOptions{OnProgress: func(progress) { cancel() }}); err == nil {
			s.Fatal("the call was not cancelled")
		}
		polltest.Until(s, "the end of the command", func() bool { return s.call(args{"shell": s.handle, "timeout": 1}).State == Idle })
		s.wants("echo after", 0, "after\n")
	})
}

// A cancelled call whose result is lost leaves no shell without a known handle.
func TestCancelledFirstCall(t *testing.T) {
	w := open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.try(ctx, args{"command": "echo begun; sleep 1000"}, client.CallOptions{OnProgress: func(p progress) { cancel() }})
	if err == nil {
		t.Fatal("the call was not cancelled")
	}
	polltest.Until(t, "the end of the shell", func() bool {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.sweepEnded()
		return len(w.s.shells) == 0
	})
}
