package doctor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"go.uber.org/goleak"
)

// roleKey is the variable that makes the test binary, started as a child, run as a server.
const roleKey = "DOWEL_DOCTOR_TEST_ROLE"

var roles = map[string]func(){
	"server": serveExample,
	"dies": func() {
		fmt.Fprintln(os.Stderr, os.Getenv("SAYS"))
		fmt.Print(os.Getenv("PRINTS"))
		os.Exit(3)
	},
	"leaves": func() {},
	"killed": func() {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		waitForever()
	},
	"noisy": func() {
		fmt.Println("Welcome to the server")
		serveExample()
	},
	"babbles": func() {
		fmt.Println("Server running on http://localhost:3000")
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"chats": func() {
		fmt.Println("debug: loading 3 plugins")
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"silent": func() {
		fmt.Fprintln(os.Stderr, "waiting for Godot")
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"slow": func() {
		waitForGate()
		serveExample()
	},
	"late": func() {
		waitForGate()
		os.Exit(4)
	},
	"deaf": func() { // ignores the end of its stdin
		serveExample()
		waitForever()
	},
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		serveExample()
		waitForever()
	},
	"old": func() { // ends at any request but the legacy handshake
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.Contains(line, `"initialize"`):
				fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"","version":""}}}`)
			case strings.Contains(line, `"server/discover"`):
				fmt.Println("what?")
				os.Exit(1)
			}
		}
	},
	"mute": func() { // closes its stdout and keeps running
		os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
		waitForever()
	},
}

// gateKey is the variable that holds the address of the gate for waitForGate.
const gateKey = "DOWEL_DOCTOR_TEST_GATE"

// waitForGate blocks the child until the test opens the gate of newGate.
func waitForGate() {
	if c, err := net.Dial("tcp", os.Getenv(gateKey)); err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

// waitForever blocks until the process is killed.
func waitForever() {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_, _ = l.Accept()
	}
}

// newGate returns the address of a gate, and a function that opens it for all children, waiting and
// future ones.
func newGate(t *testing.T) (address string, open func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var waiting []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			waiting = append(waiting, c)
		}
	}()
	open = sync.OnceFunc(func() {
		_ = l.Close()
		<-done
		for _, c := range waiting {
			_ = c.Close()
		}
	})
	t.Cleanup(open)
	return l.Addr().String(), open
}

func serveExample() {
	if err := stdio.Serve(context.Background(), exampleServer()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// exampleServer returns a server with a few things to list.
func exampleServer() *server.Server {
	s := server.New("example", "1.2.3", &server.Options{})
	type in struct{}
	for _, name := range []string{"one", "two"} {
		server.Tool(s, name, "A tool.", func(context.Context, in) (string, error) { return name, nil })
	}
	server.Resource(s, "example://thing", "A thing.", func(context.Context, struct{}) (mcp.Content, error) { return mcp.Text("thing"), nil })
	server.Prompt(s, "brief", "A brief.", func(context.Context, in) (string, error) { return "brief", nil })
	return s
}

func TestMain(m *testing.M) {
	if role, ok := roles[os.Getenv(roleKey)]; ok {
		role()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// roleCommand returns a command that starts the test binary in a role, with further variables.
// Roles that never end by themselves get a short grace.
func roleCommand(t *testing.T, role string, env ...string) stdio.Command {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := stdio.Command{Path: exe, Args: []string{"-test.run=^$"}, Env: map[string]string{roleKey: role, "GORACE": "atexit_sleep_ms=0"}, Grace: time.Minute, KillAfter: 200 * time.Millisecond}
	if slices.Contains([]string{"deaf", "stubborn", "mute"}, role) {
		c.Grace = time.Millisecond
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		c.Env[name] = value
	}
	return c
}

// testContext returns a context that ends a test that hangs.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// examineAll examines p and returns all steps. The first second of a process lasts a minute, so
// that a child which ends at once does so within it on a busy machine, too.
func examineAll(t *testing.T, p Server) []Step {
	t.Helper()
	return collectSteps(t, examine(testContext(t), p, time.Minute), func(Step) {})
}

// collectSteps collects the steps of an examination, calls onStep with each, and checks the rules
// that hold for every examination.
func collectSteps(t *testing.T, steps iter.Seq[Step], onStep func(Step)) []Step {
	t.Helper()
	var all []Step
	for s := range steps {
		all = append(all, s)
		onStep(s)
		t.Logf("%-8s %-12s %6v  %s", s.Status, s.Name, s.Took.Round(time.Millisecond), s.Detail)
		if s.Advice != "" {
			t.Logf("         → %s", s.Advice)
			isSentence(t, s.Advice)
		}
		if s.Name == "" || s.Took <= 0 || s.Status == "" || s.Detail == "" {
			t.Errorf("a step lacks its name, time, status or detail: %+v", s)
		}
		if failed := s.Status == Failed; failed != (s.Err != nil) || failed != (s.Diagnosis != nil) || failed && s.Advice == "" {
			t.Errorf("a failed step has an error, a diagnosis and an advice, and no other one: %+v", s)
		}
	}
	for _, s := range all[:max(0, len(all)-1)] {
		if s.Status == Failed {
			t.Errorf("steps come after %s, which failed", s.Name)
		}
	}
	return all
}

var sentence = regexp.MustCompile(`^[A-Z].*[^.]\.$`)

// isSentence checks that an advice is exactly one sentence.
func isSentence(t *testing.T, advice string) {
	t.Helper()
	if !sentence.MatchString(advice) || regexp.MustCompile(`[.!?]\s+[A-Z]`).MatchString(advice) || strings.Contains(advice, "\n") || strings.Contains(advice, "%!") {
		t.Errorf("the advice is not exactly one sentence: %q", advice)
	}
}

// stepNamed returns the step with a name.
func stepNamed(t *testing.T, all []Step, name string) Step {
	t.Helper()
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("the step %q is missing in %+v", name, all)
	return Step{}
}

// failedStep returns the last step, which must have failed.
func failedStep(t *testing.T, p Server) Step {
	t.Helper()
	all := examineAll(t, p)
	if len(all) == 0 || all[len(all)-1].Status != Failed {
		t.Fatalf("no step failed: %+v", all)
	}
	return all[len(all)-1]
}

// timedOutStep returns the step that fails when p does not answer within a limit. The limit grows
// until the result is complete, since a busy machine may spend a short limit on other work.
func timedOutStep(t *testing.T, p Server, isComplete func(Step) bool) Step {
	t.Helper()
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		p.Options.Limits.Start, p.Options.Limits.Connect = limit, limit
		s := failedStep(t, p)
		if isComplete(s) || limit > 30*time.Second {
			checkContains(t, s.Detail, "no connection within "+limit.String())
			return s
		}
	}
}

// hasOutput reports whether the server had written something before the step failed.
func hasOutput(s Step) bool { return len(s.Diagnosis.Stderr)+len(s.Diagnosis.StrayStdout) > 0 }

func joinNames(all []Step) string {
	var names []string
	for _, s := range all {
		name := s.Name
		if s.Status != OK {
			name += "(" + string(s.Status) + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, " > ")
}

func checkContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}
