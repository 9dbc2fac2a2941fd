//go:build unix

package cli

import (
	"encoding/json"
	"os"
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

// Each command that meets a changed server of a project names the changes, without values, and says
// how to allow it. The state file holds no value.
func TestTrustOfChangedFiles(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	env, script := filepath.Join(p.project, ".env"), filepath.Join(p.project, "hook.sh")
	p.writeFile(env, "FIRST=secret-value-1\n")
	p.writeFile(script, "true\n")
	entry := func(base string) string {
		return `{"mcpServers": {"theirs": ` + p.builtInEntry("everything", `, "envFile": ".env", "env": {"PYTHONUSERBASE": "`+base+`"}`) + `,
			"hook": {"command": "sh", "args": ["hook.sh"]}}}`
	}
	p.writeFile(p.projectFile(), entry("/base-1"))
	p.expectSuccess("allowed", "trust", "theirs", "--yes")
	p.expectSuccess("allowed, whatever the code in its folder becomes", "trust", "hook", "--yes", "--folder")
	p.writeFile(p.projectFile(), entry("/base-2"))
	p.writeFile(env, "LD_PRELOAD=/secret-value-2.so\n")
	p.writeFile(script, "false\n")

	advice := "dowel trust theirs"
	changes := []string{"~ env PYTHONUSERBASE (can make programs run other code) has another value", "~ file .env has other content"}
	values := []string{"/base-", "secret-value", "LD_PRELOAD"}
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"theirs": hub.NeedsTrust, "hook": hub.Failed})
	for _, words := range []string{"servers list", "servers list --json", "status", "status --json", "status theirs", "doctor theirs", "doctor theirs --json",
		"call theirs.echo message=x", "tools theirs", "trust", "trust --json", "run x --server theirs --model m --base-url http://127.0.0.1:1/v1"} {
		out := p.runDowel(strings.Fields(words)...)
		want := append([]string{advice}, changes...)
		if words == "trust --json" {
			want = changes
		}
		checkText(t, out.stdout+out.stderr, want, values)
	}
	text, err := os.ReadFile(filepath.Join(p.home, "dowel", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkText(t, string(text), []string{"trustKey", "env PYTHONUSERBASE"}, values)
}

// Trust in a folder replaces trust in a version, and the list tells them apart.
func TestTrustOfFolder(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	script := filepath.Join(p.project, "hook.sh")
	p.writeFile(script, "true\n")
	p.writeFile(p.projectFile(), `{"mcpServers": {"hook": {"command": "sh", "args": ["hook.sh"]}}}`)
	p.expectSuccess("allowed", "trust", "hook", "--yes")
	checkText(t, p.expectSuccess("", "trust", "--list"), []string{"file hook.sh"}, []string{"whatever"})
	p.writeFile(script, "false\n")
	p.expectSuccess("~ file hook.sh has other content", "trust")
	p.expectSuccess("allowed", "trust", "hook", "--yes")
	p.expectSuccess("allowed, whatever", "trust", "hook", "--folder", "--yes")
	p.writeFile(script, "echo\n")
	p.expectSuccess("No server waits for your trust", "trust")
	checkText(t, p.expectSuccess("", "trust", "--list"), []string{"whatever the code in its folder becomes"}, []string{"file hook.sh"})
	var list []trust.GrantLine
	if err := json.Unmarshal([]byte(p.expectSuccess("", "trust", "--list", "--json")), &list); err != nil || len(list) != 1 || !list[0].Folder {
		t.Errorf("%v, %v", list, err)
	}
}
