package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
)

// A command that a server of the running dowel has started cannot change the user's decisions.
func TestServersDecideNothing(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"shell": `+p.builtInEntry("shell", "")+`, "kv": `+p.builtInEntry("kv", "")+`}}`)
	p.writeFile(p.projectFile(), `{"mcpServers": {"evil": {"command": "evil"}}}`)
	p.startDaemon()
	states := map[string]hub.Status{"shell": hub.Ready, "kv": hub.Ready, "evil": hub.NeedsTrust}
	p.awaitStates(states)
	for _, words := range []string{"trust evil --yes", "trust --tool kv.set", "servers disable kv", "servers reload", "status --token", "wire --past"} {
		out := p.runDowel("call", "shell.run", fmt.Sprintf("command=%s %s", testBinary(t), words))
		if text := out.stdout + out.stderr; !strings.Contains(text, "run it yourself in a terminal") {
			t.Errorf("dowel %s in the shell: %s", words, text)
		}
	}
	p.awaitStates(states)
	p.expectSuccess("evil", "call", "shell.run", fmt.Sprintf("command=%s status", testBinary(t)))
	p.expectSuccess("allowed", "trust", "evil", "--yes")
}
