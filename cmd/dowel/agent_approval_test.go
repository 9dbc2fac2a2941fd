package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// approvalsOf are approvals in a state of their own, of tools whose names are SERVER.TOOL on the wire, too.
func approvalsOf(t *testing.T, sources map[string]string) *approvals {
	t.Helper()
	s, err := state.Open(filepath.Join(t.TempDir(), "state.json"), state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &approvals{s, &config.Set{}, &crew{sources: sources}, func(wire string) (string, string, bool) {
		server, tool, ok := strings.Cut(wire, ".")
		return server, tool, ok
	}}
}

// A tool is allowed for good alone: one whose name stands for all of its server's, not at all.
func TestAlwaysIsOfOneTool(t *testing.T) {
	p := approvalsOf(t, map[string]string{"mine": "user", "files": builtInSource, "theirs": "project", "here": "command line"})
	for name, wrong := range map[string]string{
		"mine.*":      "that name stands for all tools of its server",
		"mine.":       "it has no name",
		"files.*":     "that name stands for all tools of its server",
		"theirs.read": "came with a project",
		"here.read":   "stands on the command line",
		"nobody.read": "it is not known of which server it is",
		"nothing":     "it is not known of which server it is",
		"mine.read":   "",
		"mine.**":     "",
	} {
		err := p.always(name)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]bool{"mine.read": true, "mine.**": true, "mine.write": false, "mine.*": false, "files.read": false, "theirs.read": false} {
		if got := p.allowed(name); got != want {
			t.Errorf("%s is allowed: %v", name, got)
		}
	}
}

// What is offered to be typed allows that very tool, and does nothing else in a shell.
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
	p := approvalsOf(t, map[string]string{"kv": "user", "kv.eu": "user", "files": "command line", "elsewhere": "user"})
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
		if got := (&app{}).trustWord(p, name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestApprovalAdvice(t *testing.T) {
	const all = "allow all tools with --approve all"
	for _, test := range []struct {
		e    errApproval
		want string
	}{
		{errApproval{"evil__*", agent.Destructive, agent.ModeReadOnly, ""}, all},
		{errApproval{"kv__set", agent.Destructive, agent.ModeReadOnly, "kv.set"}, all + ", or this one for good with dowel trust --tool kv.set"},
		{errApproval{"kv__set", agent.Destructive, agent.ModeNone, "kv.set"}, all},
		{errApproval{"kv__get", agent.ReadOnly, agent.ModeNone, "kv.get"}, "allow it with --approve read-only"},
	} {
		if got := test.e.Advice(); got != test.want {
			t.Errorf("%+v: got %s", test.e, got)
		}
	}
}
