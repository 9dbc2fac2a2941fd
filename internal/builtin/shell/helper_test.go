//go:build unix

package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleKey); role != "" {
		playParent(role)
		return
	}
	mcptest.Main(m)
}

// bound is the time after which a step counts as hung.
const bound = polltest.Limit

type args map[string]any

// fixture is a server with a client, and the shells that the test has seen.
type fixture struct {
	*testing.T
	s *Server
	c *client.Client
}

func open(t *testing.T, o Options) fixture {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return join(t, s, client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t)}})
}

// join returns a fixture with s, which is closed when the test ends.
func join(t *testing.T, s *Server, opts client.Options) fixture {
	t.Helper()
	c, err := client.Dial(t.Context(), s, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.mu.Lock()
		all := append([]*shell(nil), s.past...)
		for _, sh := range s.shells {
			all = append(all, sh)
		}
		s.mu.Unlock()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, sh := range all {
			if left := group(t, sh.child.PID()); len(left) > 0 {
				t.Errorf("of the shell's group %d are left: %v", sh.child.PID(), left)
			}
		}
	})
	return fixture{t, s, c}
}

// try calls the tool. A tool error is returned as one.
func (w fixture) try(ctx context.Context, in args, opts ...client.CallOptions) (r Result, err error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	result, err := client.Call[*mcp.CallToolResult](ctx, w.c, "run", in, opts...)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(result.StructuredContent, &r); err != nil {
		w.Fatal(err)
	}
	return r, nil
}

func (w fixture) call(in args, opts ...client.CallOptions) Result {
	w.Helper()
	r, err := w.try(w.Context(), in, opts...)
	if err != nil {
		w.Fatalf("%.200v: %v", in, err)
	}
	return r
}

// fail calls the tool, which must return an error with these words.
func (w fixture) fail(in args, want string) {
	w.Helper()
	_, err := w.try(w.Context(), in)
	if _, ok := errors.AsType[*client.ToolError](err); !ok || !strings.Contains(err.Error(), want) {
		w.Errorf("%.200v: got the error %v, want one with %q", in, err, want)
	}
}

// session is one shell of a fixture.
type session struct {
	fixture
	handle string
}

func (w fixture) session() session {
	w.Helper()
	r := w.call(args{})
	if r.Shell == "" || r.State != Idle || r.Output != "" || (r.Note == "no command is running") != w.s.program.bash {
		w.Fatalf("a new shell: got %+v", r)
	}
	return session{w, r.Shell}
}

func (s session) do(command string) Result {
	s.Helper()
	return s.call(args{"shell": s.handle, "command": command})
}

// interrupt sends ctrl+c and waits until the command has ended.
func (s session) interrupt() Result {
	s.Helper()
	return s.call(args{"shell": s.handle, "command": "ctrl+c", "timeout": bound.Seconds()})
}

// wants runs a command that must end with this status and output.
func (s session) wants(command string, status int, output string) {
	s.Helper()
	r := s.do(command)
	if r.State != Idle || r.ExitStatus == nil || *r.ExitStatus != status || r.Output != output {
		s.Errorf("%.200q: got %s, want status %d and %.300q", command, show(r), status, output)
	}
}

// begin begins a command and returns when it runs.
func (s session) begin(command string) {
	s.Helper()
	r := s.call(args{"shell": s.handle, "command": "echo begun; " + command, "timeout": 0})
	if !strings.Contains(r.Output, "begun\n") {
		s.until("begun\n", r.Output)
	}
}

// until reads until the output, appended to before, contains the words. It returns the output with
// the last result.
func (s session) until(words string, before ...string) (string, Result) {
	s.Helper()
	var all strings.Builder
	all.WriteString(strings.Join(before, ""))
	for end := time.Now().Add(bound); ; {
		r := s.call(args{"shell": s.handle, "timeout": 0.05})
		all.WriteString(r.Output)
		if strings.Contains(all.String(), words) {
			return all.String(), r
		}
		if time.Now().After(end) {
			s.Fatalf("no %q in %q", words, all.String())
		}
		time.Sleep(time.Millisecond) // a shell without a command answers at once
	}
}

func (s session) process() *shell {
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	return s.s.shells[s.handle]
}

func show(r Result) string {
	b, _ := json.Marshal(r)
	return string(b[:min(len(b), 600)])
}

// group are the members of a process group that are more than zombies.
func group(t *testing.T, pgid int) (members []int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		if syscall.Kill(-pgid, 0) == nil {
			members = []int{pgid}
		}
		return members
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := stat(pid); len(fields) > 2 && fields[0] != "Z" && fields[2] == strconv.Itoa(pgid) {
			members = append(members, pid)
		}
	}
	return members
}

// stat are a process's state, parent, group and session.
func stat(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// runs reports whether a process is more than a zombie.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	fields := stat(pid)
	return runtime.GOOS != "linux" || len(fields) > 0 && fields[0] != "Z"
}

func allGone(t *testing.T, pids []int) {
	t.Helper()
	left := slices.Clone(pids)
	defer func() { // some are left if the test has failed
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	polltest.UntilNil(t, func() error {
		if left = slices.DeleteFunc(left, func(pid int) bool { return !runs(pid) }); len(left) > 0 {
			return fmt.Errorf("the processes %v are left", left)
		}
		return nil
	})
}

func numbers(t *testing.T, text string) (all []int) {
	t.Helper()
	for _, field := range strings.Fields(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, n)
	}
	return all
}
