package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// With a home that cannot be written, dowel runs, says once what it does not keep, and commands
// either work or say what to do.
func TestReadOnlyHome(t *testing.T) {
	p := newTestUser(t)
	p.home = "/sys" // nobody can make a folder there, not even root
	t.Setenv("TMPDIR", t.TempDir())
	p.writeFile(p.projectFile(), `{"mcpServers": {"mine": {"command": "true"}}}`)
	p.expectSuccess("hi", "call", "everything.echo", "message=hi")
	p.expectFailure(exit.Failed, "cannot store a token for the next one: set XDG_STATE_HOME", "status", "--token")
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"mine": hub.NeedsTrust})
	if text := p.output(); strings.Count(text, "warning") != 1 || !strings.Contains(text, "are not kept. To keep them, set XDG_STATE_HOME") {
		t.Errorf("got %s", text)
	}
	if out := p.runDowel("status", "--token"); !strings.HasPrefix(out.stdout, "Authorization: Bearer ") || !strings.Contains(out.stderr, "this token ends with the running dowel") {
		t.Errorf("%+v", out)
	}
	p.expectSuccess("", "tools")
	p.expectSuccess("hi", "call", "everything.echo", "message=hi")
	p.expectSuccess("", "import")
	m := startModel(t, `{"turns": [{"calls": [{"name": "everything__echo", "arguments": {"message": "hi"}}]}, {"expect": ["hi"], "text": "it said hi"}, {"text": "yes"}]}`)
	p.expectSuccess("it said hi\n", "run", "Echo.", "--model", "gpt-test", "--base-url", m.url)
	chat := p.newCommand("chat", "--model", "gpt-test", "--base-url", m.url)
	chat.Stdin = strings.NewReader("Does it work?\n")
	if out, err := chat.CombinedOutput(); err != nil || !strings.Contains(string(out), "yes\n") {
		t.Errorf("chat: %v %s", err, out)
	}
	p.expectFailure(exit.Failed, "make it writable, or name another file with --config", "servers", "add", "new", "--", "true")
	for _, words := range [][]string{{"trust", "mine", "--yes"}} {
		p.expectFailure(exit.Failed, "set XDG_STATE_HOME to a folder that dowel can write to", words...)
	}
}
