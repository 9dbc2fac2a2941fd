//go:build unix

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/trust"
)

// Without a terminal, trust shows how to allow a waiting server, and that command works.
func TestTrustAdvice(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.projectFile(), `{"mcpServers": {"evil": {"command": "evil"}}}`)
	p.expectSuccess("dowel trust evil --yes", "trust")
	for words, want := range map[string]string{
		"trust --yes":             "dowel trust NAME --yes",
		"trust --revoke":          "need the names of servers",
		"trust nope":              "nope does not wait for your trust: evil does",
		"trust --revoke evil":     "no server called evil is allowed in this project",
		"trust x --yes --revoke":  "none of the others can be",
		"trust nope --project /":  "nope does not wait for your trust: no server does",
		"trust nope --yes --json": "evil does",
	} {
		if out := p.runDowel(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v, want %q", words, out, want)
		}
	}
	p.writeFile(filepath.Join(p.project, ".mcp.json"), `{"mcpServers": {"more": {"command": "more"}}}`)
	if out := p.runDowel("trust", "nope"); !strings.Contains(out.stderr, ": evil, more do") {
		t.Errorf("%+v", out)
	}
	p.expectSuccess("allowed", "trust", "evil", "--yes")
}

// trust --list shows the allowed servers. --revoke ends it, and a running dowel stops the server.
func TestTrustRevoked(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.expectSuccess("You have not allowed any server of a project", "trust", "--list")
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": `+p.builtInEntry("everything", "")+`}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"theirs": hub.NeedsTrust})
	p.expectSuccess("allowed", "trust", "theirs", "--yes")
	p.awaitStates(map[string]hub.Status{"theirs": hub.Ready})
	checkText(t, p.expectSuccess("", "trust", "--list"), []string{"theirs, from ", "dowel.json", "kind stdio", "command "}, nil)
	p.expectSuccess("You have not allowed any server of a project", "trust", "--list", "other")
	var list []trust.GrantLine
	if err := json.Unmarshal([]byte(p.expectSuccess("", "trust", "--list", "--json")), &list); err != nil || len(list) != 1 || list[0].Name != "theirs" || len(list[0].Facts) == 0 {
		t.Errorf("%v, %v", list, err)
	}
	out := p.runDowel("trust", "--revoke", "theirs", "--project", p.home)
	if out.code != exit.Usage || !strings.Contains(out.stderr, "add --project "+filepath.Dir(list[0].File)) {
		t.Errorf("%+v", out)
	}
	p.expectSuccess("is no longer allowed", "trust", "--revoke", "theirs")
	p.awaitStates(map[string]hub.Status{"theirs": hub.NeedsTrust})
	p.expectSuccess("You have not allowed any server of a project", "trust", "--list")
}
