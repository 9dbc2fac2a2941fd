//go:build unix

package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// A server that cannot be reached without a running dowel leads to dowel doctor.
func TestConnectAdvice(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"crash": {"command": "/bin/sh", "args": ["-c", "echo boom >&2; exit 1"]}}}`)
	p.expectFailure(exit.Connection, "dowel doctor crash finds the cause", "tools", "crash")
	p.expectFailure(exit.Connection, "dowel doctor -- … finds the cause", "tools", "--", "/bin/sh", "-c", "exit 1")
	p.expectFailure(exit.Connection, "dowel doctor --url … finds the cause", "tools", "--url", "http://127.0.0.1:1/mcp")
}

// After dowel export, the servers are named that both dowel and the tool would start.
func TestExportNamesDuplicates(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(filepath.Join(p.home, ".cursor", "mcp.json"), `{"mcpServers": {"My Files": {"command": "x"}, "off": {"command": "y", "disabled": true}, "only-here": {"command": "z"}}}`)
	p.writeFile(p.userFile(), `{"mcpServers": {"my-files": {"command": "x"}, "off": {"command": "y", "disabled": true}}}`)
	p.expectSuccess("mcp.json keeps: My Files. Remove them there", "export", "--to", "cursor")
}

// A dry run ends with the list and the summary, which the changes would push off the screen.
func TestDryImportEndsWithSummary(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	writeOtherTools(p)
	out := p.runDowel("import", "--dry-run")
	change, list := strings.Index(out.stdout, `"mcpServers"`), strings.Index(out.stdout, "Cursor: 3 servers in")
	if out.code != exit.OK || change < 0 || list < change {
		t.Errorf("the change is at %d, the list at %d: %+v", change, list, out)
	}
}

// writeOtherTools gives the user servers in the files of other tools.
func writeOtherTools(p *testUser) {
	p.writeFile(filepath.Join(p.home, ".cursor/mcp.json"), `{"mcpServers": {
		"github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${env:NO_SUCH_TOKEN}"}},
		"My Files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/documents", "/home/ada/src"]},
		"off": {"command": "npx", "args": ["-y", "off"], "disabled": true}}}`)
	p.writeFile(filepath.Join(p.home, "Code/User/settings.json"), `{"mcp": {"servers": {"git": {"command": "uvx", "args": ["mcp-server-git"]},
		"theme": {"command": "x", "args": ["${config:workbench.colorTheme}"]}}}}`)
	p.writeFile(filepath.Join(p.home, "opencode/opencode.json"), `{"mcp": {"context7": {"type": "remote", "url": "https://mcp.context7.com/mcp", "headers": {"KEY": "{env:NO_SUCH_KEY}"}}}}`)
	p.writeFile(filepath.Join(p.home, ".gemini/settings.json"), `{"mcpServers": {"trusted": {"command": "node", "args": ["/srv/x.js"], "trust": true},
		"context7": {"httpUrl": "https://mcp.context7.com/mcp"}}}`)
}
