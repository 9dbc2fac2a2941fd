package cli

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"golang.org/x/sys/unix"
)

// startScreen starts dowel chat with a model and the test server, and waits until both are
// ready.
func startScreen(t *testing.T, m *model, words ...string) *pty {
	t.Helper()
	p := onTerminal(t, withTestServer(t, append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, words...)...)...)
	p.awaitScreen("1 ready")
	return p
}

// screen returns the text on a terminal of 80 columns and 24 rows after all output so far.
func (p *pty) screen() string { return p.screenOfSize(80, 24) }

// screenOfSize is screen for a terminal of another size.
func (p *pty) screenOfSize(columns, rows uint16) string {
	p.t.Helper()
	terminal := vt.NewEmulator(int(columns), int(rows))
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, terminal) // ends when the pipe of the answers is closed
	}()
	if _, err := terminal.WriteString(p.output()); err != nil {
		p.t.Error(err)
	}
	text := terminal.String()
	if err := terminal.InputPipe().(io.Closer).Close(); err != nil {
		p.t.Error(err)
	}
	<-answers
	return text
}

// awaitScreen waits until the screen shows all texts.
func (p *pty) awaitScreen(texts ...string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the screen:\n%s", p.screen())
		}
	}()
	for _, text := range texts {
		polltest.Until(p.t, "the screen shows "+text, func() bool { return strings.Contains(p.screen(), text) })
	}
}

// checkTerminalRestored checks that the program has left the terminal as it was.
func (p *pty) checkTerminalRestored() {
	p.t.Helper()
	out := p.output()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l"} {
		if strings.LastIndex(out, on) > strings.LastIndex(out, off) {
			p.t.Errorf("%q is not taken back in %q", on, out)
		}
	}
	state, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	if state.Lflag&unix.ECHO == 0 || state.Lflag&unix.ICANON == 0 {
		p.t.Error("the terminal is still in raw mode")
	}
}

// A terminal that can move its cursor shows the full screen. A flag or a variable keeps the lines.
func TestChatPlain(t *testing.T) {
	for name, test := range map[string]struct {
		words    []string
		variable string
		isPlain  bool
	}{
		"default":         {nil, "TERM=xterm-256color", false},
		"older scripts":   {[]string{"--screen"}, "", false},
		"plain":           {[]string{"--plain"}, "", true},
		"no screen":       {[]string{"--screen=false"}, "", true},
		"dumb":            {nil, "TERM=dumb", true},
		"screen and dumb": {[]string{"--screen"}, "TERM=dumb", true},
		"screen reader":   {nil, "ACCESSIBLE=1", true},
	} {
		t.Run(name, func(t *testing.T) {
			ownState(t)
			m := newModel(t, `{"turns": [{"expect": ["hello"], "text": "Hello to you."}]}`)
			name, value, _ := strings.Cut(test.variable, "=")
			cmd := newCommand(t, withTestServer(t, append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, test.words...)...)...)
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `export ` + cmp.Or(name, "UNUSED") + `="$0"; exec "$@"`, value}, cmd.Args...)
			cmd.Env = os.Environ()
			p := startOnTerminal(t, cmd, 80, 24)
			p.awaitScreen("17 tools")
			p.typeText("hello\r")
			p.awaitScreen("Hello to you.")
			p.typeText("\x04")
			p.expectExit(exit.OK)
			if isPlain := !strings.Contains(p.output(), "\x1b[?1049h"); isPlain != test.isPlain {
				t.Errorf("lines: %t, want %t", isPlain, test.isPlain)
			}
		})
	}
}

func TestChatScreen(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [
		{"expect": ["hello"], "text": "A **bold** answer.", "usage": {"input": 1200, "output": 5}},
		`+addCall("1", "2")+`, {"expect": ["3"], "text": "It is three."},
		{"calls": [{"name": "cli-test__name"}]},
		{"expect": ["hello Ada"], "text": "Ada it is."},
		{"calls": [{"name": "cli-test__wait"}]},
		{"expect": ["queued words"], "text": "The queue is empty."}]}`)
	p := startScreen(t, m)
	p.typeText("hello\r")
	p.awaitScreen("A bold answer.", "1,200 tokens read", "gpt-test")

	p.typeText("add\r")
	p.awaitScreen("Run cli-test.add?", "a: 1", "b: 2", "run it once")
	p.typeText("y\r")
	p.awaitScreen("It is three.", "cli-test.add a=1 b=2")

	p.typeText("ask\r")
	p.awaitScreen("Run cli-test.name?")
	p.typeText("S\r")
	p.awaitScreen("What is your name?", "send this to cli-test")
	p.typeText("Ada\r\r")
	p.awaitScreen("Ada it is.")

	p.typeText("go\r")
	p.awaitScreen("1/100 waiting")
	p.typeText("queued words\r")
	p.awaitScreen("queued: queued words")
	p.typeText("\x1b")
	p.awaitScreen("stopped; the conversation until then is kept", "The queue is empty.")

	p.typeText("/approve\r")
	p.awaitScreen("ask: dowel asks before it runs a tool")
	p.typeText("/quit\r")
	p.expect("saved; continue with dowel chat --resume")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
}

// Earlier messages of other sessions are in the history.
func TestChatScreenHistory(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [{"text": "First."}, {"expect": ["an unusual question"], "text": "Second."}]}`)
	if out := runDowel(t, "an unusual question\n", withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...); out.code != exit.OK {
		t.Fatalf("%+v", out)
	}
	p := startScreen(t, m)
	p.typeText("\x12unus")
	p.awaitScreen("an unusual question")
	p.typeText("\r")
	p.awaitScreen("› an unusual question")
	p.typeText("\r")
	p.awaitScreen("Second.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
}

// The commands work on the full screen as on lines. Forms ask their questions.
func TestChatScreenCommands(t *testing.T) {
	state := ownState(t)
	m := newModel(t, `{"turns": [{"text": "First answer."}, {"text": "Second answer."}]}`)
	if out := runDowel(t, "an earlier question\n", withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...); out.code != exit.OK {
		t.Fatalf("%+v", out)
	}
	saved, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	p := startScreen(t, m)
	for _, step := range [][2]string{{"/servers re\t", "› /servers restart"}, {"cl\t", "restart cli-test"}} {
		p.typeText(step[0])
		p.awaitScreen(step[1])
	}
	p.typeText("\r")
	p.awaitScreen("cli-test restarts; /servers shows its state")
	p.typeText("/tools off cli-test.ec\t")
	p.awaitScreen("off cli-test.echo")
	p.typeText("\r")
	p.awaitScreen("does not have cli-test.echo from the next message on")
	p.typeText("/resume 20\t")
	p.awaitScreen("› /resume " + strings.TrimSuffix(filepath.Base(saved[0]), ".jsonl"))
	p.typeText("\r")
	p.awaitScreen("> an earlier question", "Continue this conversation? (y, n)")
	p.typeText("y\r")
	p.awaitScreen("the model stays gpt-test")
	p.typeText("more\r")
	p.awaitScreen("Second answer.")
	p.typeText("/fork\r")
	p.awaitScreen("goes back to it")
	p.typeText("/theme light\r")
	p.awaitScreen("theme light")
	p.typeText("/theme lite\r")
	p.awaitScreen("want dark, light, auto")
	p.typeText("/undo\r")
	p.awaitScreen("there is no edit to undo")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
}
