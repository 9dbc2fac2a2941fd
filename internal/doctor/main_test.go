package doctor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"go.uber.org/goleak"
)

// roleKey makes the test binary, started once more, play a server instead of running tests.
const roleKey = "DOWEL_DOCTOR_TEST_ROLE"

var roles = map[string]func(){
	"server": serve,
	"dies": func() {
		fmt.Fprintln(os.Stderr, os.Getenv("SAYS"))
		fmt.Print(os.Getenv("PRINTS"))
		os.Exit(3)
	},
	"leaves": func() {},
	"killed": func() {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		time.Sleep(time.Hour)
	},
	"noisy": func() {
		fmt.Println("Welcome to the server")
		serve()
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
		time.Sleep(1200 * time.Millisecond)
		serve()
	},
	"late": func() { // dies once its first second is over
		time.Sleep(1200 * time.Millisecond)
		os.Exit(4)
	},
	"deaf": func() { // stays when its stdin ends
		serve()
		time.Sleep(time.Hour)
	},
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		serve()
		time.Sleep(time.Hour)
	},
	"old": func() { // knows nothing but the handshake, and ends at anything else
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
	"mute": func() { // lives on without a stdout
		os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
		time.Sleep(time.Hour)
	},
}

func serve() {
	if err := stdio.Serve(context.Background(), example()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// example is a server with a few things to list.
func example() *server.Server {
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

// play is a command for the test binary in a role, with further variables.
func play(t *testing.T, role string, env ...string) stdio.Command {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := stdio.Command{Path: exe, Args: []string{"-test.run=^$"}, Env: map[string]string{roleKey: role, "GORACE": "atexit_sleep_ms=0"}, Grace: time.Second, KillAfter: 200 * time.Millisecond}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		c.Env[name] = value
	}
	return c
}

// steps examines a patient and checks what holds for every examination.
func steps(t *testing.T, p Patient) []Step {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all []Step
	for s := range Examine(ctx, p) {
		all = append(all, s)
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

// named returns the step of a name.
func named(t *testing.T, all []Step, name string) Step {
	t.Helper()
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no step %q in %+v", name, all)
	return Step{}
}

// failing returns the step that failed, which is the last one.
func failing(t *testing.T, p Patient) Step {
	t.Helper()
	all := steps(t, p)
	if len(all) == 0 || all[len(all)-1].Status != Failed {
		t.Fatalf("no step failed: %+v", all)
	}
	return all[len(all)-1]
}

func path(all []Step) string {
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

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}
