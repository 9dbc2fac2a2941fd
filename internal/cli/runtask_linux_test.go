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
	p := onTerminal(t, m.args(t, "Echo", "hi", "--approve", "all")...)
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
	p := onTerminal(t, m.args(t, "-")...)
	p.expect("end it with Ctrl-D")
	p.typeText("typed by hand\n\x04")
	p.expect("ok\r\n")
	p.expectExit(exit.OK)
}

// A call that needs an approval is shown once, with a flag that allows it.
func TestRunTaskApprovalOnTerminal(t *testing.T) {
	m := newModel(t, `{"turns": [{"text": "I add.", "calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}]}]}`)
	p := onTerminal(t, m.args(t, "Add")...)
	p.expect("I add.\r\n")
	p.expect("the model called cli-test.add")
	p.expect("--approve all")
	p.expectExit(exit.Approval)
	if n := strings.Count(p.output(), "cli-test.add"); n != 1 { // no advice: a server of the command line cannot be trusted for good
		t.Errorf("the tool is named %d times: %q", n, p.output())
	}
}
