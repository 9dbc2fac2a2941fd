//go:build unix

package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// checkText checks that text contains all parts and does not contain any of not.
func checkText(t *testing.T, text string, parts, not []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	for _, part := range not {
		if strings.Contains(text, part) {
			t.Errorf("%q is in\n%s", part, text)
		}
	}
}

// import shows the command or URL of each server without secrets. Without a terminal and --yes, it
// adds nothing.
func TestImportShows(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(filepath.Join(p.home, ".cursor/mcp.json"), `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a", "--token=not-to-be-seen"], "env": {"API_KEY": "nor-this"}},
		"r": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer also-hidden"}}}}`)
	p.writeFile(p.userFile(), `{"gateway": {"token": "mine-as-well"}, "mcpServers": {"mine": {"command": "x", "env": {"A_SECRET": "of-my-own"}}}}`)
	secrets := []string{"not-to-be-seen", "nor-this", "also-hidden", "mine-as-well", "of-my-own"}
	shown := []string{"command npx", "args -y a --token=****", "env API_KEY", "url https://example.com/mcp", "header Authorization"}
	checkText(t, p.expectSuccess("", "import", "--dry-run", "--details"), append(shown, `"API_KEY": "****"`, `"Bearer ****"`), secrets)
	checkText(t, p.expectSuccess("", "import", "--dry-run", "--json"), shown, secrets)
	for _, words := range [][]string{{"import", "--details"}, {"import", "--json"}} {
		out := p.runDowel(words...)
		checkText(t, out.stdout, shown, secrets)
		if out.code != exit.Usage || !strings.Contains(out.stderr, "--yes") {
			t.Errorf("%+v", out)
		}
	}
	if text := p.readText(p.userFile()); strings.Contains(text, "npx") {
		t.Errorf("it was added: %s", text)
	}
	p.expectSuccess("Written", "import", "--yes")
	checkText(t, p.readText(p.userFile()), secrets, []string{"****"})
}

// For a name that the user has already, import tells whether the entries are equal.
func TestImportTwice(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(filepath.Join(p.home, ".cursor/mcp.json"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}, "d": {"command": "x"}}}`)
	p.writeFile(filepath.Join(p.home, ".kiro/settings/mcp.json"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`)
	p.writeFile(p.userFile(), `{"mcpServers": {"c": {"command": "x"}, "d": {"command": "z"}}}`)
	checkText(t, p.expectSuccess("", "import", "--dry-run"), []string{
		"it is the same as ~/.cursor/mcp.json:1:17",
		"it differs from ~/.cursor/mcp.json:1:40",
		"you already have the same server: ~/dowel/dowel.json:1:17",
		"you have a different server of this name: ~/dowel/dowel.json:1:40",
	}, nil)
}

// import does not add a project's servers to the user's file. In the project's file, they wait for
// trust.
func TestImportOfProject(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	project, err := filepath.EvalSymlinks(p.project)
	if err != nil {
		t.Fatal(err)
	}
	p.writeFile(filepath.Join(p.project, ".vscode/mcp.json"), `{"inputs": [{"id": "key", "type": "promptString", "password": true}],
		"servers": {"v": {"command": "evil", "args": ["${workspaceFolder}/x"], "env": {"K": "${input:key}", "A_TOKEN": "in-clear"}}}}`)
	p.writeFile(filepath.Join(p.project, ".cursor/mcp.json"), `{"mcpServers": {"c": {"command": "evil"}}}`)
	p.writeFile(filepath.Join(p.home, ".claude.json"), `{"mcpServers": {"all": {"command": "fine", "cwd": "${workspaceFolder}"}}, "projects": {"`+project+`": {"mcpServers": {"local": {"command": "evil"}}}}}`)
	for _, words := range [][]string{{"import", "v", "--yes"}, {"import", "--yes"}} {
		out := p.expectSuccess("dowel import --of-project", words...)
		checkText(t, p.readText(p.userFile()), nil, []string{"evil"})
		if len(words) == 2 {
			checkText(t, out, []string{"– v", "– c", "– local"}, nil)
		}
	}
	checkText(t, p.readText(p.userFile()), []string{`"fine"`, `"cwd": "` + project + `"`}, []string{"workspaceFolder"})
	if out := p.runDowel("import", "--of-project", "--config", p.userFile()); out.code != exit.Usage {
		t.Errorf("%+v", out)
	}
	out := p.runDowel("import", "--of-project", "--yes")
	checkText(t, out.stdout+out.stderr, []string{"dowel trust", "replace ${input:key} by ${KEY}", "the entry of v contains a secret"}, []string{"fine", "in-clear"})
	checkText(t, p.readText(p.projectFile()), []string{"${workspaceFolder}/x", `"v"`, `"c"`, `"local"`}, []string{project, "fine"})
	checkText(t, p.expectSuccess("", "trust"), []string{"v, from", "c, from", "local, from"}, nil)
	if p.readText(filepath.Join(p.home, "dowel/state.json")) != "" {
		t.Error("something is trusted")
	}
}
