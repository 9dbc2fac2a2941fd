package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// On a terminal, run shows the answer as it arrives, and events on their own lines.
func TestRunTaskOnTerminal(t *testing.T) {
	m := newModel(t, `{"turns": [
		{"text": "Let me see.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}, {"name": "cli-test__fail"}]},
		{"text": "It said hi.", "usage": {"input": 1234, "cached": 1000, "output": 5}}]}`)
	p := onTerminal(t, m.runArgs(t, "Echo", "hi", "--approve", "all")...)
	for _, want := range []string{"Let me see.\r\n", "cli-test.echo", "message=hi", "cli-test.fail", "out of cheese", "It said hi.\r\n", "2 steps", "1,234 tokens read"} {
		p.expect(want)
	}
	p.expectExit(exit.OK)
	if n := strings.Count(p.output(), "It said hi."); n != 1 {
		t.Errorf("the answer is there %d times: %q", n, p.output())
	}
}

// With - as the task, run asks for it on the terminal.
func TestRunTaskTyped(t *testing.T) {
	m := newModel(t, `{"turns": [{"expect": ["typed by hand"], "text": "ok"}]}`)
	p := onTerminal(t, m.runArgs(t, "-")...)
	p.expect("end it with Ctrl-D")
	p.typeText("typed by hand\n\x04")
	p.expect("ok\r\n")
	p.expectExit(exit.OK)
}

// With --approve or --json, run does not ask. A call that needs an approval ends it with
// [exit.Approval]. With --approve, run shows the call once and names the flag that would allow it.
func TestRunTaskApprovalWithoutQuestion(t *testing.T) {
	for _, word := range []string{"--approve=read-only", "--json"} {
		m := newModel(t, `{"turns": [{"text": "I add.", "calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}]}]}`)
		p := onTerminal(t, m.runArgs(t, "Add", word)...)
		p.expect("the model called cli-test.add")
		if word != "--json" {
			p.expect("--approve all")
		}
		p.expectExit(exit.Approval)
		if strings.Contains(p.output(), "Run cli-test.add?") {
			t.Errorf("%s: there was a question: %q", word, p.output())
		}
		if n := strings.Count(p.output(), "the model called cli-test.add"); n != 1 && word != "--json" {
			t.Errorf("the refusal is reported %d times: %q", n, p.output())
		}
		if strings.Contains(p.output(), "dowel trust --tool") { // impossible for a server of the command line
			t.Errorf("%s: dowel trust is suggested: %q", word, p.output())
		}
	}
}

// On a terminal, run asks about a call like chat does. Keys typed before the question do not answer
// it.
func TestRunTaskAsksOnTerminal(t *testing.T) {
	const question = "Run cli-test.add? [y/s/server/a/e/n/?]"
	for name, tt := range map[string]struct {
		turns string
		steps []string // pairs for converse
		shows string
		code  int
	}{
		"once":      {addCall("1", "2") + `,{"expect": ["3"], "text": "It is 3."}`, []string{"a: 1", "", question, "y\r"}, "It is 3.", exit.OK},
		"session":   {addCall("1", "2") + "," + addCall("3", "4") + `,{"expect": ["7"], "text": "It is 7."}`, []string{question, "s\r"}, "It is 7.", exit.OK},
		"edited":    {addCall("1", "2") + `,{"expect": ["42"], "text": "It is 42."}`, []string{question, "e\r", "Arguments:", "\x15" + `{"a":40,"b":2}` + "\r", "a: 40", "", question, "y\r"}, "It is 42.", exit.OK},
		"refused":   {addCall("1", "2") + `,{"expect": ["refused: use a calculator"], "text": "I did not."}`, []string{question, "n use a calculator\r"}, "I did not.", exit.OK},
		"Ctrl-D":    {addCall("1", "2") + `,{"expect": ["the user refused"], "text": "I did not."}`, []string{question, "\x04"}, "I did not.", exit.OK},
		"Ctrl-C":    {addCall("1", "2"), []string{question, "\x03"}, "the task was interrupted", 130},
		"typeahead": {addCall("1", "2") + `,{"expect": ["3"], "text": "It is 3."}`, []string{"", "n too early\r", question, "y\r"}, "It is 3.", exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			ownState(t)
			m := newModel(t, `{"turns": [`+tt.turns+`]}`)
			p := onTerminal(t, m.runArgs(t, "Add")...)
			p.converse(tt.steps...)
			p.expect(tt.shows)
			p.expectExit(tt.code)
		})
	}
}
