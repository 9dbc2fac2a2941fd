//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// export --remove takes back an export and keeps every other byte of the file.
func TestExportRemove(t *testing.T) {
	t.Parallel()
	for tool, file := range map[string]struct{ path, text string }{
		"cursor":   {".cursor/mcp.json", "{\r\n\t// mine\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"}, // of a\r\n\t},\r\n\t\"odd\" : [1,2 ,],\r\n}"},
		"codex":    {".codex/config.toml", "# mine\nmodel = 'x'\n\n[mcp_servers.a]\ncommand = \"x\" # of a\n\n[other]\nkeep=1"},
		"continue": {".continue/config.yaml", "# mine\nname: x\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: a\n    command: x # of a\nrules: [ 'b' ]\n"},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			path := filepath.Join(p.home, file.path)
			p.expectSuccess("Nothing to remove: ", "export", "--to", tool, "--remove")
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Error("a file was made to remove an entry")
			}
			p.writeFile(path, file.text)
			p.expectSuccess("Nothing to remove: "+path, "export", "--to", tool, "--remove")
			p.expectSuccess("Written: "+path, "export", "--to", tool)
			exported := p.readText(path)
			if exported == file.text {
				t.Fatal("nothing was exported")
			}
			p.expectSuccess("- ", "export", "--to", tool, "--remove", "--dry-run")
			p.expectSuccess("Nothing to remove: ", "export", "--to", tool, "--remove", "--name", "other")
			if p.readText(path) != exported {
				t.Error("the file was changed too early")
			}
			p.expectSuccess(`no longer starts dowel: its server "dowel" is removed`, "export", "--to", tool, "--remove")
			if got := p.readText(path); got != file.text {
				t.Errorf("there and back it is\n%q, want\n%q", got, file.text)
			}
			if out := p.expectSuccess("", "export", "--to", tool, "--remove", "--json"); !strings.Contains(out, `"changed":false`) && !strings.Contains(out, `"changed": false`) {
				t.Error(out)
			}
		})
	}
}

// export --remove keeps an entry that dowel export did not write.
func TestExportRemoveKeepsOthers(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	path := filepath.Join(p.home, ".cursor/mcp.json")
	for _, entry := range []string{
		`{"command": "other", "args": ["up", "--stdio"]}`, `{"url": "http://127.0.0.1:7800/mcp"}`,
		`{"command": "/bin/dowel", "args": ["up", "--stdio", "--tool-search"]}`, `{"command": "/bin/dowel", "args": ["up", "--stdio"], "env": {"A": "b"}}`,
	} {
		text := `{"mcpServers": {"dowel": ` + entry + `}}`
		p.writeFile(path, text)
		out := p.runDowel("export", "--to", "cursor", "--remove")
		if out.code == 0 || !strings.Contains(out.stderr, "is not as dowel export wrote it") || p.readText(path) != text {
			t.Errorf("%s: %+v, and then %s", entry, out, p.readText(path))
		}
	}
	p.writeFile(path, `{"mcpServers": {"mine": {"command": "/elsewhere/dowel", "args": ["up", "--stdio"]}}}`)
	p.expectSuccess("is removed", "export", "--to", "cursor", "--remove", "--name", "mine")
	if got := p.readText(path); got != `{"mcpServers": {}}` {
		t.Error(got)
	}
}
