//go:build unix

package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
)

// No output shows a secret of the configuration, of the command line or of a server's stderr: not
// in URLs, arguments, variables and header fields.
func TestSecretsInOutputs(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	script := `echo "connecting to postgres://own:swordfish-1@db/x with --token swordfish-2a" >&2; exit 1`
	p.writeFile(p.userFile(), fmt.Sprintf(`{"gateway": {"audit": %q, "auditArguments": true}, "mcpServers": {
		"kv": %s,
		"args": {"command": "false", "args": ["postgres://u:swordfish-3@127.0.0.1/db", "--api-key", "swordfish-4", "TOKEN=swordfish-5"]},
		"env": {"command": "sh", "args": ["-c", "echo $DSN >&2; exit 1"], "env": {"DSN": "postgres://u:swordfish-6@127.0.0.1/db"}},
		"own": {"command": "sh", "args": ["-c", %q]},
		"url": {"url": "http://127.0.0.1:1/mcp?token=swordfish-7", "headers": {"Authorization": "Bearer swordfish-8", "X-Dsn": "mysql://u:swordfish-9@h"}}}}`,
		filepath.Join(p.home, "audit"), p.builtInEntry("kv", ""), script))
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": {"command": "false", "args": ["--db=postgres://u:swordfish-a@h/db", "--password", "swordfish-b"]}}}`)
	var seen strings.Builder
	see := func(name, text string) {
		if i := strings.Index(text, "swordfish"); i >= 0 {
			t.Errorf("%s shows a secret: %s", name, text[max(0, i-60):min(len(text), i+40)])
		}
		seen.WriteString(text)
	}
	commands := func() {
		for _, words := range []string{"servers list", "servers list --json", "config check", "config explain args", "config explain args --json", "config explain env",
			"config explain env --json", "config explain url", "config explain url --json", "config explain theirs", "trust", "trust --json", "doctor", "doctor --json",
			"call kv.get key=x --wire", "call url.x --wire", "call url.x --json", "tools --url http://127.0.0.1:1/mcp?token=swordfish-c --wire --verbose",
			"tools --url http://u:swordfish-d@127.0.0.1:1/mcp --json", "doctor --url http://u:swordfish-d@127.0.0.1:1/mcp?api_key=swordfish-e", "tools --url :swordfish-f@x",
			"tools --url http://127.0.0.1:1/mcp?token=swordfish-c --env A=b", "tools --wire -- false postgres://u:swordfish-g@h/db --token swordfish-h",
			"discover -- false postgres://u:swordfish-g@h/db --token swordfish-h", "doctor -- false postgres://u:swordfish-g@h/db --token swordfish-h",
			"call kv.set key=y value=postgres://u:swordfish-i@h/db --wire --json", "import --dry-run"} {
			out := p.runDowel(strings.Fields(words)...)
			see("dowel "+words, out.stdout+out.stderr)
		}
	}
	commands()
	url := p.startDaemon("--verbose")
	p.awaitStates(map[string]hub.Status{"kv": hub.Ready, "args": hub.Failed, "env": hub.Failed, "own": hub.Failed, "url": hub.Failed, "theirs": hub.NeedsTrust})
	commands()
	for _, words := range []string{"status", "status --json", "status args", "status env --json", "status own", "status url", "servers logs env", "servers logs own --json"} {
		out := p.runDowel(strings.Fields(words)...)
		see("dowel "+words, out.stdout+out.stderr)
	}
	token := strings.TrimSpace(strings.TrimPrefix(p.expectSuccess("Bearer ", "status", "--token"), "Authorization: "))
	code, page := p.request("GET", url+"/status.json", http.Header{"Authorization": {token}})
	if code != http.StatusOK || !strings.Contains(page, "postgres://u:****@127.0.0.1/db") {
		t.Errorf("%d %s", code, page)
	}
	see("/status.json", page)
	p.stopDaemon()
	see("dowel up", p.output())
	audit, err := os.ReadFile(filepath.Join(p.home, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	see("the audit log", string(audit))
	state, err := os.ReadFile(filepath.Join(p.home, "dowel", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	see("the state", string(state))
	checkText(t, string(audit), []string{`postgres://u:****@h/db`}, nil)
	checkText(t, seen.String(), []string{"postgres://u:****@127.0.0.1/db", "--api-key ****", "TOKEN=****", "postgres://own:****@db/x with --token ****", "mcp?token=****"}, nil)
}
