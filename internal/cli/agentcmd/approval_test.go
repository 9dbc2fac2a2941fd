package agentcmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// newTestApprovals returns approvals with an empty state, for tools with the wire names
// SERVER.TOOL.
func newTestApprovals(t *testing.T, sources map[string]string) *approvals {
	t.Helper()
	s, err := state.Open(filepath.Join(t.TempDir(), "state.json"), state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	servers := &serverSet{sources: sources, listServers: func(context.Context) ([]Server, error) { return nil, nil }}
	return &approvals{state: s, set: &config.Set{}, servers: servers, splitToolName: func(wire string) (string, string, bool) {
		server, tool, ok := strings.Cut(wire, ".")
		return server, tool, ok
	}}
}

// A permanent approval covers one tool. A tool called "*" cannot be allowed for good.
func TestAlwaysIsOfOneTool(t *testing.T) {
	p := newTestApprovals(t, map[string]string{"mine": "user", "files": connect.BuiltInSource, "theirs": "project", "here": "command line"})
	for name, wrong := range map[string]string{
		"mine.*":      "the name means all tools of the server",
		"mine.":       "its name is empty",
		"files.*":     "the name means all tools of the server",
		"theirs.read": "came with a project",
		"here.read":   "was given on the command line",
		"nobody.read": "its server is unknown",
		"nothing":     "its server is unknown",
		"mine.read":   "",
		"mine.**":     "",
	} {
		err := p.allowAlways(name)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]bool{"mine.read": true, "mine.**": true, "mine.write": false, "mine.*": false, "files.read": false, "theirs.read": false} {
		if got := p.isAllowed(name); got != want {
			t.Errorf("%s is allowed: %v", name, got)
		}
	}
}

// The suggested argument of dowel trust allows exactly one tool and is safe in a shell.
func TestTrustWord(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME", "APPDATA", "LOCALAPPDATA", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join(home, "dowel"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers": {"kv": {"command": "x"}, "kv.eu": {"command": "x"}}}`
	if err := os.WriteFile(filepath.Join(home, "dowel", "dowel.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newTestApprovals(t, map[string]string{"kv": "user", "kv.eu": "user", "files": "command line", "elsewhere": "user"})
	for name, known := range map[string]bool{
		"kv.get": true, "kv.admin/get": true,
		"kv.*": false, "kv.": false, "kv.eu.get": false, "kv.eu.*": false, // of the tools eu.get and eu.* of kv
		"kv.get;id": false, "kv.$HOME": false, "kv.g?t": false, "kv.two words": false, "kv.g\u0435t": false, "kv.g\u200bet": false,
		"files.write": false, "elsewhere.get": false, "nobody.get": false,
	} {
		want := ""
		if known {
			want = name
		}
		if got := trustArgument((&factory.Factory{}), p, name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
