package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/session"
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

// Ctrl-C stops a reply and a question. Twice, it ends the program.
func TestChatScreenInterrupt(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [`+addCall("1", "2")+`, {"calls": [{"name": "cli-test__wait"}]}]}`)
	p := startScreen(t, m)
	p.typeText("add\r")
	p.awaitScreen("Run cli-test.add?")
	p.typeText("\x03")
	p.awaitScreen("stopped; the conversation until then is kept")
	p.typeText("/approve all\r")
	p.awaitScreen("all: every tool runs without a question")
	p.typeText("go\r")
	p.awaitScreen("1/100 waiting")
	p.typeText("\x03\x03")
	p.expectExit(exit.Interrupted)
	p.checkTerminalRestored()
}

// Ctrl-C stops the turn in each of its states, and the next message has an answer.
func TestChatScreenInterruptStates(t *testing.T) {
	for name, test := range map[string]struct{ turn, mode, shows string }{
		"reply":    {`{"delayMs": 600000, "text": "never"}`, "ask", "thinking"},
		"approval": {addCall("1", "2"), "ask", "Run cli-test.add?"},
		"question": {`{"calls": [{"name": "cli-test__name"}]}`, "all", "What is your name?"},
		"page":     {`{"calls": [{"name": "cli-test__visit", "arguments": {"url": "https://example.com"}}]}`, "all", "visit a page"},
		"call":     {`{"calls": [{"name": "cli-test__wait"}]}`, "all", "1/100 waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			ownState(t)
			p := startScreen(t, newModel(t, `{"turns": [`+test.turn+`, {"expect": ["and now"], "text": "We go on."}]}`), "--approve", test.mode)
			p.typeText("go\r")
			p.awaitScreen(test.shows)
			p.typeText("\x03")
			p.awaitScreen("stopped; the conversation until then is kept")
			p.typeText("and now\r")
			p.awaitScreen("We go on.")
			p.typeText("\x04")
			p.expectExit(exit.OK)
			p.checkTerminalRestored()
		})
	}
}

// Ctrl-C stops the wait for a task, which goes on: the next message waits for it again.
func TestChatScreenInterruptOfTask(t *testing.T) {
	ownState(t)
	signal := filepath.Join(t.TempDir(), "signal")
	m := newModel(t, fmt.Sprintf(`{"turns": [{"calls": [{"name": "cli-test__await", "arguments": {"path": %q}}]}, {"text": "I wait."},
		{"expect": ["and now"], "text": "Not yet."}, {"expect": ["has ended", "the file is there"], "text": "It is done."}]}`, signal))
	p := onTerminal(t, "chat", "--model", "gpt-test", "--base-url", m.url, "--approve", "all", "--", testBinary(t), taskServerWord)
	p.awaitScreen("1 ready")
	p.typeText("go\r")
	p.awaitScreen("waiting for the task of cli-test.await")
	p.typeText("\x03")
	p.awaitScreen("stopped; the conversation until then is kept")
	p.typeText("and now\r")
	p.awaitScreen("Not yet.")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitScreen("It is done.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
}

// SIGTERM ends the program and restores the terminal, and so does Ctrl-Z until the user continues.
func TestChatScreenSuspended(t *testing.T) {
	ownState(t)
	p := startScreen(t, newModel(t, `{"turns": [{"expect": ["again"], "text": "Here again."}]}`))
	p.typeText("\x1a")
	p.expect("\x1b[?1049l")
	polltest.Until(t, "the program is back", func() bool {
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		out := p.output()
		return strings.LastIndex(out, "\x1b[?1049h") > strings.LastIndex(out, "\x1b[?1049l")
	})
	p.typeText("again\r")
	p.awaitScreen("Here again.")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.expectExit(128 + int(syscall.SIGTERM))
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

// Ctrl-G writes the message in the user's editor. Esc twice takes the last message back.
func TestChatScreenEditor(t *testing.T) {
	state := ownState(t)
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'from the %s editor' \"$(cat \"$1\")\" > \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EDITOR", editor)
	m := newModel(t, `{"turns": [{"expect": ["from the good editor"], "text": "First answer."}, {"expect": ["from the good editor!"], "text": "Second answer."}]}`)
	p := startScreen(t, m)
	p.typeText("good\x07")
	p.awaitScreen("› from the good editor")
	p.typeText("\r")
	p.awaitScreen("First answer.", "1 step")
	p.typeText("\x1b")
	p.awaitScreen("Esc again edits your last message")
	p.typeText("\x1b")
	p.awaitScreen("are taken back")
	p.typeText("!\r")
	p.awaitScreen("Second answer.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
	saved, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	_, held, err := session.Load(saved[0])
	if err != nil || len(held.Messages) != 2 || held.Messages[0].Text() != "from the good editor!" {
		t.Errorf("the conversation holds %+v, %v", held, err)
	}
}

// A pasted path of an image, and a mention of one, send the image to the model.
func TestChatScreenImage(t *testing.T) {
	ownState(t)
	path := filepath.Join(t.TempDir(), "a picture.png")
	if err := os.WriteFile(path, pixel, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newModel(t, `{"turns": [{"expectBody": ["data:image/png;base64,", "this one?"], "text": "One pixel."}]}`)
	p := startScreen(t, m)
	p.typeText("\x1b[200~" + strings.ReplaceAll(path, " ", `\ `) + "\x1b[201~")
	p.awaitScreen("picture.png\"")
	p.typeText("this one?\r")
	p.awaitScreen("added "+path[:20], "One pixel.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
}

// An image in a result is shown by a terminal that says that it can, and is a link on all terminals.
// The link ends with the conversation.
func TestChatScreenPicture(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]string{"kitty": "\x1bP>|kitty(0.42.1)\x1b\\\x1b_Gi=16;OK\x1b\\", "tmux": "\x1bP>|tmux 3.5a\x1b\\\x1b_Gi=16;OK\x1b\\"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTestUser(t)
			m := startModel(t, `{"turns": [{"calls": [{"name": "everything__test_image_content", "arguments": {}}]}, {"text": "A picture."}]}`)
			u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
			cmd := u.newCommand("chat", "--approve", "all")
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `export TERM=xterm-256color; exec "$@"`, "sh"}, cmd.Args...)
			p := startOnTerminal(t, cmd, 80, 24)
			p.expect("\x1b[>q") // asks for the terminal's name
			if name == "tmux" {
				answers, _, _ = strings.Cut(answers, "\x1b_G")
			}
			p.typeText(answers)
			p.awaitScreen("1 ready")
			if name == "kitty" {
				p.expect("\x1b_Ga=q")
			}
			p.typeText("go\r")
			p.awaitScreen("A picture.", "png 1×1 · file:///")
			isShown := strings.Contains(p.output(), "\x1b_Ga=T,U=1,f=100,q=2,i=16,c=1,r=1") && strings.Contains(p.output(), "\U0010EEEE\u0305\u0305")
			if hasGraphics := strings.Contains(p.output(), "\x1b_G"); isShown != (name == "kitty") || hasGraphics != isShown {
				t.Errorf("the image is shown: %t, the output has graphics: %t", isShown, hasGraphics)
			}
			_, link, _ := strings.Cut(strings.Join(strings.Fields(p.screen()), ""), "file://")
			link, _, _ = strings.Cut(link, ".png")
			if _, err := os.Stat(link + ".png"); err != nil {
				t.Errorf("the link is to no file: %v", err)
			}
			p.typeText("\x04")
			p.expectExit(exit.OK)
			if _, err := os.Stat(filepath.Dir(link)); err == nil {
				t.Errorf("%s is still there", filepath.Dir(link))
			}
		})
	}
}

// F12 shows the frames of the current call: of servers of the command line, and of the running dowel.
func TestChatScreenWire(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{"named": {"--server", "everything"}, "running": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTestUser(t)
			m := startModel(t, `{"turns": [{"calls": [{"name": "everything__echo", "arguments": {"message": "first words"}}]}, {"text": "One."},
				{"calls": [{"name": "everything__echo", "arguments": {"message": "second words"}}]}, {"text": "Two."}]}`)
			u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
			p := startOnTerminal(t, u.newCommand(append([]string{"chat", "--approve", "all"}, words...)...), 80, 24)
			p.awaitScreen("1 ready")
			p.typeText("go\r")
			p.awaitScreen("One.")
			p.typeText("\x1b[24~")
			p.awaitScreen("wire · everything.echo · frame 2", "→", "request tools/call", `"text":"first words"}]`, "response tools/call ok")
			p.typeText("again\r")
			p.awaitScreen("Two.", "second words")
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the screen:\n%s", p.screen())
				}
			})
			polltest.Until(t, "the first call's frames are gone", func() bool {
				_, pane, _ := strings.Cut(p.screen(), "wire · ")
				return strings.Contains(pane, `"text":"second words"}]`) && !strings.Contains(pane, "first words") && strings.Contains(pane, "response tools/call ok")
			})
			p.typeText("\x04")
			p.expectExit(exit.OK)
		})
	}
}

// F12 shows the frames of the model's own call while another client calls the same tool.
func TestChatScreenWireOfOwnCall(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	m := startModel(t, `{"turns": [{"calls": [{"name": "everything__test_elicitation", "arguments": {"message": "Own question?"}}]}, {"expect": ["Ada"], "text": "Done."}]}`)
	u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
	p := startOnTerminal(t, u.newCommand("chat", "--approve", "all"), 80, 24)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", p.screen())
		}
	})
	p.awaitScreen("1 ready")
	p.typeText("\x1b[24~go\r")
	p.awaitScreen("everything (", "wire · everything.test_elicitation · frame 2", "Own question?")
	call := []string{"call", "everything.test_elicitation", "message=Other question?", "--answer", "username=Bob", "--answer", "email=bob@example.com"}
	for range 2 {
		if out := u.runDowel(call...); out.code != exit.OK || !strings.Contains(out.stdout, "Bob") {
			t.Fatalf("the other client: %+v", out)
		}
	}
	p.typeText("Ada\rada@example.com\r\r")
	p.awaitScreen("Done.", "frame 4", `"username":"Ada"`)
	if screen := p.screen(); strings.Contains(screen, "Bob") || strings.Contains(screen, "Other") {
		t.Errorf("the frames of the other client's call are shown:\n%s", screen)
	}
	p.typeText("\x04")
	p.expectExit(exit.OK)
}
