package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// Ctrl-C cancels the call at the server, and the chat continues.
func TestChatInterruptOfCall(t *testing.T) {
	ownState(t)
	trace := filepath.Join(t.TempDir(), "trace")
	t.Setenv(traceVariable, trace)
	p := startChat(t, newModel(t, `{"turns": [{"text": "I wait.", "calls": [{"name": "cli-test__wait"}]}, {"expect": ["and now"], "text": "we go on"}]}`), "--approve", "all")
	p.typeText("go\r")
	p.expect("1/100 waiting")
	p.typeText("\x03")
	p.expect("stopped; the conversation until then is kept")
	if got := waitFor(t, trace, "cancelled"); got != "cancelled" {
		t.Errorf("the server saw %q", got)
	}
	p.expect(prompt)
	p.typeText("and now\r")
	p.expect("we go on\r\n")
	p.endChat()
}

// Ctrl-C at a question stops the call that asked it.
func TestChatInterruptOfQuestion(t *testing.T) {
	for _, tool := range []string{"add", "name"} {
		t.Run(tool, func(t *testing.T) {
			ownState(t)
			words, waits, input := []string{}, "[y/s/server/a/e/n/?]", `{"a": 1, "b": 2}`
			if tool == "name" {
				words, waits, input = []string{"--approve", "all"}, "  >\x1b[0m \x1b[?2004h", "{}"
			}
			p := startChat(t, newModel(t, `{"turns": [{"calls": [{"name": "cli-test__`+tool+`", "arguments": `+input+`}]}, {"text": "we go on"}]}`), words...)
			p.typeText("go\r")
			p.expect(waits)
			p.typeText("\x03")
			p.expect("stopped; the conversation until then is kept")
			p.expect(prompt)
			p.typeText("and now\r")
			p.expect("we go on\r\n")
			p.endChat()
		})
	}
}

// Ctrl-C stops a reply. The received part stays in the chat.
func TestChatInterruptOfReply(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [{"delayMs": 600000, "text": "never"}, {"expectBody": ["first words"], "text": "we go on"}]}`)
	p := startChat(t, m)
	p.typeText("first words\r")
	polltest.Until(t, "the request has its turn", func() bool { return m.Left() == 1 })
	p.typeText("\x03")
	p.expect("stopped")
	p.expect(prompt)
	p.typeText("and now\r")
	p.expect("we go on\r\n")
	p.endChat()
}

// Keys that are typed during a reply are not in it, and become the next line.
func TestChatKeysDuringReply(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [{"calls": [{"name": "cli-test__wait"}]}, {"expectBody": ["typed early and late"], "text": "the answer"}]}`)
	p := startChat(t, m, "--approve", "all")
	p.typeText("go\r")
	p.expect("1/100 waiting")
	before := len(p.output())
	p.typeText("typed early")
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil { // Ctrl-C would discard the keys
		t.Fatal(err)
	}
	p.expect("stopped; the conversation until then is kept")
	if out := p.output()[before:p.seen]; strings.Contains(out, "typed") {
		t.Errorf("the keys are in the reply: %q", out)
	}
	p.expect(prompt)
	p.expect("typed early")
	p.typeText(" and late\r")
	p.expect("the answer\r\n")
	p.endChat()
}

// pressedOnce ends the answer to a first Ctrl-C at the prompt.
const pressedOnce = "and so does Ctrl-C twice"

func TestChatInterruptTwice(t *testing.T) {
	for _, test := range []struct{ name, said, answer string }{{"at the prompt", "", pressedOnce}, {"in a call", "go\r", "stopped"}} {
		t.Run(test.name, func(t *testing.T) {
			ownState(t)
			script := `{"turns": []}`
			if test.said != "" {
				script = `{"turns": [{"calls": [{"name": "cli-test__wait"}]}]}`
			}
			p := startChat(t, newModel(t, script), "--approve", "all")
			if test.said == "" {
				p.typeText("some words\x03")
				p.expect("some words") // the prompt before it does not count
				p.expect(prompt)
			} else {
				p.typeText(test.said)
				p.expect("1/100 waiting")
			}
			first := time.Now()
			p.typeText("\x03")
			p.expect(test.answer)
			p.expect(prompt)
			p.pressUntilEnd(first)
			p.expectExit(exit.Interrupted)
		})
	}
}

// pressUntilEnd presses Ctrl-C at the prompt until the chat ends. A press counts as a first one if
// the chat sees it more than two seconds after the last one, which was typed after last.
func (p *pty) pressUntilEnd(last time.Time) {
	p.t.Helper()
	for {
		typed := time.Now()
		p.typeText("\x03")
		if !p.expectOrEnd(pressedOnce) {
			return
		}
		if apart := time.Since(last); apart < 2*time.Second {
			p.t.Fatalf("Ctrl-C twice within %v does not end the chat", apart)
		}
		p.expect(prompt)
		last = typed
	}
}

// After a typed line, Ctrl-C counts as the first one again.
func TestChatInterruptApart(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"calls": [{"name": "cli-test__wait"}]}, {"text": "we go on"}]}`), "--approve", "all")
	p.typeText("go\r")
	p.expect("1/100 waiting")
	p.typeText("\x03")
	p.expect("stopped")
	p.converse(prompt, "/approve\r", "all: every tool runs", "", prompt, "\x03", pressedOnce, "")
	p.expect(prompt)
	p.typeText("and now\r")
	p.expect("we go on\r\n")
	p.endChat()
}

// SIGTERM ends the chat and restores the terminal.
func TestChatTerminated(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": []}`))
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.expect("stopping")
	p.expectExit(128 + int(syscall.SIGTERM))
}
