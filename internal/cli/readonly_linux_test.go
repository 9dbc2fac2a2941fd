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
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"mine": hub.NeedsTrust})
	if text := p.output(); strings.Count(text, "warning") != 1 || !strings.Contains(text, "are not kept. To keep them, set XDG_STATE_HOME") {
		t.Errorf("got %s", text)
	}
	p.expectSuccess("Authorization: Bearer ", "status", "--token")
	p.expectSuccess("", "tools")
	p.expectSuccess("hi", "call", "everything.echo", "message=hi")
	p.expectSuccess("", "import")
	for _, words := range [][]string{{"trust", "mine", "--yes"}} {
		p.expectFailure(exit.Failed, "set XDG_STATE_HOME to a folder that dowel can write to", words...)
	}
}
