//go:build unix

package shell

import (
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
	"github.com/dowel-mcp/dowel/mcp"
)

type progress = mcp.ProgressParams

func TestUnusedShellEnds(t *testing.T) {
	w := open(t, Options{Idle: 30 * time.Millisecond})
	r := w.call(args{"command": "sleep 1000 & sleep 0.1"}) // a call may take longer than Idle
	if r.State != Idle {
		t.Fatalf("got %s", show(r))
	}
	s := session{w, r.Shell}
	polltest.Until(t, "the end of the shell", func() bool {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		return len(w.s.past) == 1
	})
	<-w.s.past[0].exited
	s.fail(args{"shell": s.handle, "command": "echo"}, "the shell has ended (it was not used for 30ms)")
	if r := s.call(args{"shell": s.handle, "restart": true, "command": "echo again"}); r.Output != "again\n" {
		t.Errorf("got %s", show(r))
	}
}

func TestNumberOfShells(t *testing.T) {
	w := open(t, Options{MaxShells: 2})
	one, two := w.session(), w.session()
	w.fail(args{}, "the maximum of 2 open shells")
	if r := one.call(args{"shell": one.handle, "restart": true}); r.State != Idle {
		t.Errorf("got %s", show(r))
	}
	w.fail(args{}, "the maximum of 2 open shells")
	two.do("exit")
	w.session().wants("echo third", 0, "third\n")
	w.fail(args{"shell": two.handle, "restart": true}, "the maximum of 2 open shells")
	w.fail(args{"shell": two.handle, "command": "echo"}, "and restart, or without a handle")
	for range maxPast + 2 {
		one.do("exec true")
		r := w.call(args{})
		one.handle = r.Shell
	}
	w.fail(args{"shell": two.handle, "command": "echo"}, "no shell has the handle")
}

func TestUnknownHandle(t *testing.T) {
	w := open(t, Options{})
	w.fail(args{"shell": "nosuchshell", "command": "echo"}, `no shell has the handle "nosuchshell"`)
	w.fail(args{"shell": "nosuchshell", "restart": true}, `no shell has the handle "nosuchshell"`)
	w.fail(args{"timeout": -1}, "timeout")
	s := w.session()
	if _, err := w.s.enterShell("another client", s.handle); err == nil || !strings.Contains(err.Error(), "no shell has the handle") {
		t.Errorf("another client's shell: got the error %v", err)
	}
}

func TestShellsAreApart(t *testing.T) {
	w := open(t, Options{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			r, err := w.try(t.Context(), args{"command": "i=" + strings.Repeat("x", i)})
			for range 20 {
				if err != nil || r.State != Idle {
					t.Errorf("got %s, %v", show(r), err)
					return
				}
				if r, err = w.try(t.Context(), args{"shell": r.Shell, "command": "echo $i; i=${i}y"}); !strings.HasPrefix(r.Output, strings.Repeat("x", i)) {
					t.Errorf("got %s, %v", show(r), err)
				}
			}
		})
	}
	all.Wait()
}

// The calls of one shell are about one command: the second is told so.
func TestOneCommandAtATime(t *testing.T) {
	s := open(t, Options{}).session()
	var all sync.WaitGroup
	var mu sync.Mutex
	done, busy := 0, 0
	for range 8 {
		all.Go(func() {
			_, err := s.try(t.Context(), args{"shell": s.handle, "command": "sleep 0.02"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done++
			case strings.Contains(err.Error(), "is busy"):
				busy++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if done < 1 || done+busy != 8 {
		t.Errorf("%d done, %d busy", done, busy)
	}
	s.wants("echo after", 0, "after\n")
}

// Of several calls that restart a shell at once, one does it, and no shell without a known handle
// remains.
func TestRestartsAtTheSameTime(t *testing.T) {
	s := open(t, Options{}).session()
	for range 5 {
		var all sync.WaitGroup
		var mu sync.Mutex
		done := 0
		for range 6 {
			all.Go(func() {
				r, err := s.try(t.Context(), args{"shell": s.handle, "restart": true, "command": "echo new"})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && r.State == Idle && r.Output == "new\n":
					done++
				case err == nil && r.State == Ended: // by the restart of another call
				case err != nil && (strings.Contains(err.Error(), "restarted") || strings.Contains(err.Error(), "is busy")):
				default:
					t.Errorf("got %s, %v", show(r), err)
				}
			})
		}
		all.Wait()
		if done == 0 {
			t.Error("nobody has restarted it")
		}
		s.wants("echo after", 0, "after\n")
		if runtime.GOOS == "linux" {
			if found := inFolder(t, s.s.opts.Dir); !slices.Equal(found, []int{s.process().child.PID()}) {
				t.Errorf("the shells are %v, want %d alone", found, s.process().child.PID())
			}
		}
	}
}

// inFolder returns the processes with this working folder.
func inFolder(t *testing.T, dir string) (pids []int) {
	for _, name := range pidNames(t) {
		if at, err := os.Readlink("/proc/" + name + "/cwd"); err == nil && at == dir {
			pids = append(pids, numbers(t, name)...)
		}
	}
	return pids
}

func TestCloseWhileACommandRuns(t *testing.T) {
	w := open(t, Options{})
	s := w.session()
	var all sync.WaitGroup
	all.Go(func() {
		r, err := s.try(t.Context(), args{"shell": s.handle, "command": "sleep 1000"})
		if err != nil || r.State != Ended || !strings.Contains(r.Note, "the server was closed") {
			t.Errorf("got %s, %v", show(r), err)
		}
	})
	polltest.Until(t, "a command", func() bool { return s.process().currentCommand() != nil })
	w.s.Close()
	all.Wait()
}

func TestProgress(t *testing.T) {
	s := open(t, Options{}).session()
	s.wants("mkfifo fifo", 0, "")
	var all strings.Builder
	var writing sync.WaitGroup
	defer writing.Wait()
	r := s.call(args{"shell": s.handle, "command": "echo one; sleep 0.4; echo two; read x <fifo; echo three", "timeout": 100}, client.CallOptions{
		OnProgress: func(p progress) {
			all.WriteString(p.Message)
			if p.Total != 100 || p.Progress <= 0 {
				t.Errorf("got %+v", p)
			}
			if strings.Contains(p.Message, "two") {
				writing.Go(func() { os.WriteFile(filepath.Join(s.s.opts.Dir, "fifo"), []byte("go on\n"), 0) })
			}
		},
	})
	if all.String() != "one\ntwo\n" || r.Output != "one\ntwo\nthree\n" {
		t.Errorf("progress %q, result %s", all.String(), show(r))
	}
}
