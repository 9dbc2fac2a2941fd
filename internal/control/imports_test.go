package control_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
)

// Servers of another tool are listed without their secrets, and added with them. A choice that is
// not offered adds nothing.
func TestImports(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	o := config.Options{Home: home, GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	write(t, cursor, `{"mcpServers": {
		"My Notes": {"command": "npx", "args": ["-y", "notes"], "env": {"NOTES_TOKEN": "canary-of-the-token"}},
		"mine": {"command": "other"}, "broken": {"args": ["x"]}}}`)
	own := filepath.Join(o.Dir(), "dowel.json")
	write(t, own, "{\n  // kept\n  \"mcpServers\": {\"mine\": {\"command\": \"mine\"}}\n}\n")

	all := control.ListImports(o)
	text, err := json.Marshal(all)
	if err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("the list has a secret: %s, %v", text, err)
	}
	if len(all.Servers) != 3 || all.File != own {
		t.Fatalf("%s", text)
	}
	why := map[string]string{}
	for _, s := range all.Servers {
		why[s.Name] = s.Why
		if s.Name == "My Notes" && (s.As != "my-notes" || s.Tool != "Cursor" || s.Target != "npx -y notes" || len(s.Facts) == 0) {
			t.Errorf("%+v", s)
		}
	}
	if why["My Notes"] != "" || !strings.Contains(why["mine"], "different server of this name") || !strings.Contains(why["broken"], "line 3") {
		t.Errorf("%q", why)
	}

	notes := all.Servers[slices.IndexFunc(all.Servers, func(s control.ImportServer) bool { return s.Name == "My Notes" })].ImportChoice
	other := notes
	other.Seen = "of another entry"
	for _, wrong := range [][]control.ImportChoice{nil, {other}, {notes, {Path: cursor, Name: "mine"}}, {notes, {Path: own, Name: "My Notes", Seen: notes.Seen}}} {
		if outcome, err := control.AddImports(o, control.ImportRequest{Servers: wrong}); err == nil {
			t.Errorf("%+v: %+v", wrong, outcome)
		}
	}
	if got := read(t, own); strings.Contains(got, "notes") {
		t.Errorf("a refused choice was added:\n%s", got)
	}
	outcome, err := control.AddImports(o, control.ImportRequest{Servers: []control.ImportChoice{notes}, TrustAnnotations: true})
	if err != nil || len(outcome.Added) != 1 || outcome.Added[0] != "my-notes" {
		t.Errorf("%+v, %v", outcome, err)
	}
	got := read(t, own)
	for _, part := range []string{"// kept", `"my-notes"`, `"title": "My Notes"`, "canary-of-the-token", `"trustAnnotations": true`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in\n%s", part, got)
		}
	}
}

// Nothing is added to a file of another tool's format.
func TestImportIntoForeignFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	code := filepath.Join(home, ".vscode", "mcp.json")
	write(t, code, `{"servers": {}}`)
	o := config.Options{Home: home, GOOS: "linux", Env: func(string) (string, bool) { return "", false }, Files: []string{code}}
	_, err := control.AddImports(o, control.ImportRequest{Servers: []control.ImportChoice{{Path: code, Name: "x"}}})
	if err == nil || !strings.Contains(err.Error(), "has the format of") {
		t.Error(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
