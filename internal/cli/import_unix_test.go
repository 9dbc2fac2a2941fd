//go:build unix

package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// has checks that a text holds some parts, and none of others.
func has(t *testing.T, text string, parts, not []string) {
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

// What is offered says what it would run, and no secret; nothing is added where nobody can be asked.
func TestImportShows(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(filepath.Join(p.home, ".cursor/mcp.json"), `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a", "--token=not-to-be-seen"], "env": {"API_KEY": "nor-this"}},
		"r": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer also-hidden"}}}}`)
	p.write(p.own(), `{"gateway": {"token": "mine-as-well"}, "mcpServers": {"mine": {"command": "x", "env": {"A_SECRET": "of-my-own"}}}}`)
	secrets := []string{"not-to-be-seen", "nor-this", "also-hidden", "mine-as-well", "of-my-own"}
	shown := []string{"command npx", "args -y a --token=****", "env API_KEY", "url https://example.com/mcp", "header Authorization"}
	has(t, p.ok("", "import", "--dry-run"), append(shown, `"API_KEY": "****"`, `"Bearer ****"`), secrets)
	has(t, p.ok("", "import", "--dry-run", "--json"), shown, secrets)
	for _, words := range [][]string{{"import"}, {"import", "--json"}} {
		out := p.run(words...)
		has(t, out.stdout, shown, secrets)
		if out.code != exit.Usage || !strings.Contains(out.stderr, "--yes") {
			t.Errorf("%+v", out)
		}
	}
	if text := p.text(p.own()); strings.Contains(text, "npx") {
		t.Errorf("it was added: %s", text)
	}
	p.ok("Written", "import", "--yes")
	has(t, p.text(p.own()), secrets, []string{"****"})
}

// Of a name that is there already it is said whether it is the same.
func TestImportTwice(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(filepath.Join(p.home, ".cursor/mcp.json"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}, "d": {"command": "x"}}}`)
	p.write(filepath.Join(p.home, ".kiro/settings/mcp.json"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`)
	p.write(p.own(), `{"mcpServers": {"c": {"command": "x"}, "d": {"command": "z"}}}`)
	has(t, p.ok("", "import", "--dry-run"), []string{
		"it is the same as that of " + filepath.Join(p.home, ".cursor/mcp.json:1:17"),
		"it differs from that of " + filepath.Join(p.home, ".cursor/mcp.json:1:40"),
		"you have the same: " + p.own() + ":1:17",
		"you have another one of that name: " + p.own() + ":1:40",
	}, nil)
}

// What tools keep for a project is not added to what is the user's, and waits for trust in the project's own file.
func TestImportOfProject(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	project, err := filepath.EvalSymlinks(p.project)
	if err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(p.project, ".vscode/mcp.json"), `{"inputs": [{"id": "key", "type": "promptString", "password": true}],
		"servers": {"v": {"command": "evil", "args": ["${workspaceFolder}/x"], "env": {"K": "${input:key}", "A_TOKEN": "in-clear"}}}}`)
	p.write(filepath.Join(p.project, ".cursor/mcp.json"), `{"mcpServers": {"c": {"command": "evil"}}}`)
	p.write(filepath.Join(p.home, ".claude.json"), `{"mcpServers": {"all": {"command": "fine", "cwd": "${workspaceFolder}"}}, "projects": {"`+project+`": {"mcpServers": {"local": {"command": "evil"}}}}}`)
	for _, words := range [][]string{{"import", "v", "--yes"}, {"import", "--yes"}} {
		out := p.ok("dowel import --of-project", words...)
		has(t, p.text(p.own()), nil, []string{"evil"})
		if len(words) == 2 {
			has(t, out, []string{"– v", "– c", "– local"}, nil)
		}
	}
	has(t, p.text(p.own()), []string{`"fine"`, `"cwd": "` + project + `"`}, []string{"workspaceFolder"})
	if out := p.run("import", "--of-project", "--config", p.own()); out.code != exit.Usage {
		t.Errorf("%+v", out)
	}
	out := p.run("import", "--of-project", "--yes")
	has(t, out.stdout+out.stderr, []string{"dowel trust", "replace ${input:key} by ${KEY}", "there is a secret in the entry of v"}, []string{"fine", "in-clear"})
	has(t, p.text(p.shared()), []string{"${workspaceFolder}/x", `"v"`, `"c"`, `"local"`}, []string{project, "fine"})
	has(t, p.ok("", "trust"), []string{"v, of", "c, of", "local, of"}, nil)
	if p.text(filepath.Join(p.home, "dowel/state.json")) != "" {
		t.Error("something is trusted")
	}
}
