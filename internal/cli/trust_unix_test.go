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

// What waits says how it is allowed where nobody can be asked, and the advice works.
func TestTrustAdvice(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.shared(), `{"mcpServers": {"evil": {"command": "evil"}}}`)
	p.ok("dowel trust evil --yes", "trust")
	for words, want := range map[string]string{
		"trust --yes":             "dowel trust NAME --yes",
		"trust --revoke":          "named",
		"trust nope":              "nope does not wait for your trust: evil does",
		"trust --revoke evil":     "no server called evil is allowed in this project",
		"trust x --yes --revoke":  "none of the others can be",
		"trust nope --project /":  "nope does not wait for your trust: no server does",
		"trust nope --yes --json": "evil does",
	} {
		if out := p.run(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v, want %q", words, out, want)
		}
	}
	p.write(filepath.Join(p.project, ".mcp.json"), `{"mcpServers": {"more": {"command": "more"}}}`)
	if out := p.run("trust", "nope"); !strings.Contains(out.stderr, ": evil, more do") {
		t.Errorf("%+v", out)
	}
	p.ok("allowed", "trust", "evil", "--yes")
}

// What is allowed can be looked at, and taken back: a dowel that runs ends the server.
func TestTrustRevoked(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.ok("Nothing of a project is allowed", "trust", "--list")
	p.write(p.shared(), `{"mcpServers": {"theirs": `+p.served("everything", "")+`}}`)
	p.up()
	p.until(map[string]hub.Status{"theirs": hub.NeedsTrust})
	p.ok("allowed", "trust", "theirs", "--yes")
	p.until(map[string]hub.Status{"theirs": hub.Ready})
	has(t, p.ok("", "trust", "--list"), []string{"theirs, of ", "dowel.json", "kind stdio", "command "}, nil)
	p.ok("Nothing of a project is allowed", "trust", "--list", "other")
	var list []trust.GrantLine
	if err := json.Unmarshal([]byte(p.ok("", "trust", "--list", "--json")), &list); err != nil || len(list) != 1 || list[0].Name != "theirs" || len(list[0].Facts) == 0 {
		t.Errorf("%v, %v", list, err)
	}
	out := p.run("trust", "--revoke", "theirs", "--project", p.home)
	if out.code != exit.Usage || !strings.Contains(out.stderr, "add --project "+filepath.Dir(list[0].File)) {
		t.Errorf("%+v", out)
	}
	p.ok("is not allowed any more", "trust", "--revoke", "theirs")
	p.until(map[string]hub.Status{"theirs": hub.NeedsTrust})
	p.ok("Nothing of a project is allowed", "trust", "--list")
}
