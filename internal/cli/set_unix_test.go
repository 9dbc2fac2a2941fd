//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// servers set replaces mcp-remote by its URL and keeps the rest of the entry and of the file.
func TestServersSet(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	const before = `{
  // mine
  "mcpServers": {
    "other": {"command": "x",}, // kept
    "linear": {
      "command": "npx", // goes
      "args": ["-y", "mcp-remote@latest", "https://mcp.example/sse", "--transport", "sse-only", "--header", "Authorization: Bearer ${KEY}", "--header", "X-Team:${TEAM}"],
      "env": {"KEY": "hidden-value"},
      "tools": {"hide": ["a"]}, // stays
    },
    "plain": {"command": "x", "args": ["y"], "lazy": true},
    "odd": {"command": "npx", "args": ["mcp-remote", "https://mcp.example", "--ignore-tool", "x"]},
  },
}
`
	p.writeFile(p.userFile(), before)
	if out := p.expectSuccess("+ ", "servers", "set", "linear", "--dry-run"); strings.Contains(out, "hidden-value") || p.readText(p.userFile()) != before {
		t.Errorf("the dry run shows %s", out)
	}
	p.expectSuccess("Written: "+p.userFile(), "servers", "set", "linear")
	got := p.readText(p.userFile())
	for _, part := range []string{"// mine", `"other": {"command": "x",}, // kept`, `"tools": {"hide": ["a"]}, // stays`, `"type": "sse"`,
		`"url": "https://mcp.example/sse"`, `"Authorization": "Bearer hidden-value"`, `"X-Team": "${TEAM}"`} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in\n%s", part, got)
		}
	}
	if strings.Contains(got, "mcp-remote@latest") || strings.Contains(got, `"env"`) || p.readText(p.userFile()+".bak") != before {
		t.Errorf("the file is now\n%s", got)
	}
	p.expectFailure(exit.Usage, "its entry does not start mcp-remote", "servers", "set", "plain")
	p.expectFailure(exit.Usage, "--ignore-tool", "servers", "set", "odd")
	p.expectFailure(exit.Usage, "is not a URL", "servers", "set", "plain", "--url", "mcp.example")
	p.expectFailure(exit.Usage, "did you mean linear?", "servers", "set", "linaer")
	if p.readText(p.userFile()) != got {
		t.Error("a refused change has been written")
	}
	p.expectSuccess("Written", "servers", "set", "plain", "--url", "https://b.example/mcp", "-H", "X-B: c")
	if got := p.readText(p.userFile()); !strings.Contains(got, `"plain": {"lazy": true, "url": "https://b.example/mcp", "headers": {"X-B": "c"}}`) {
		t.Errorf("the file is now\n%s", got)
	}
	shared := filepath.Join(p.project, ".mcp.json")
	p.writeFile(shared, `{"mcpServers": {"team": {"command": "npx", "args": ["mcp-remote", "https://t.example/mcp"]}}}`)
	p.expectSuccess("Written: "+shared, "servers", "set", "team")
	if got := p.readText(shared); got != `{"mcpServers": {"team": {"type": "http", "url": "https://t.example/mcp"}}}` {
		t.Errorf("the project's file is now %s", got)
	}
}

// A server that waits for mcp-remote's login names the command that replaces mcp-remote.
func TestLoginAdvice(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	script := filepath.Join(t.TempDir(), "mcp-remote")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '\\nPlease authorize this client by visiting:\\nhttps://login.example/a\\n\\n' >&2\nwhile read -r line; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.writeFile(p.userFile(), `{"mcpServers": {"linear": {"command": "`+script+`", "args": ["https://mcp.example/sse"]}}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"linear": hub.NeedsLogin})
	p.expectSuccess("dowel servers set linear", "status", "linear")
	p.expectSuccess("dowel servers set linear", "servers", "list")
}
