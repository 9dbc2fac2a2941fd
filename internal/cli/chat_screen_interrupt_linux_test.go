package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

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

// Ctrl-C stops the wait for a task, but not the task: the next message waits for it again.
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
