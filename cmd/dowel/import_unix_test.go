//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
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
		if out.code != exitUsage || !strings.Contains(out.stderr, "--yes") {
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
	if out := p.run("import", "--of-project", "--config", p.own()); out.code != exitUsage {
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

// A dowel that will be gone is not what another tool should start.
func TestPassing(t *testing.T) {
	t.Setenv("TMPDIR", "/scratch")
	t.Setenv("GOCACHE", "/elsewhere/cache")
	for program, want := range map[string]bool{
		"/scratch/go-build123/b001/exe/dowel":           true,
		"/home/u/.cache/go-build/ab/0123-d/dowel":       true,
		"/elsewhere/cache/ab/0123-d/dowel":              true,
		"/scratch/dowel":                                true,
		"/scratch/go-build123/b001/dowel.test":          false,
		"/home/u/go/bin/dowel":                          false,
		"/home/u/src/dowel/dowel":                       false,
		"/scratchy/dowel":                               false,
		"/usr/local/go-bu/exe/dowel":                    false,
		"/home/u/go/bin/exe/dowel":                      false,
		"/home/u/Library/Caches/go-build/ab/0-d/dowel":  true,
		"/home/u/go-build-tools/bin/dowel":              false,
		"/var/folders/x/T/go-build42/b001/exe/main.exe": true,
	} {
		if got := passing(program); got != want {
			t.Errorf("%s: %v", program, got)
		}
	}
}

// In its place the dowel that is installed is, and where none is, it is said how to have one.
func TestLasting(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", "/scratch")
	t.Setenv("PATH", folder)
	if got, err := lasting("/home/u/go/bin/dowel"); err != nil || got != "/home/u/go/bin/dowel" {
		t.Error(got, err)
	}
	if got, err := lasting("/scratch/go-build1/b001/exe/dowel"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "go install ./cmd/dowel") {
		t.Error(got, err)
	}
	installed := filepath.Join(folder, "dowel")
	if err := os.WriteFile(installed, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := lasting("/scratch/go-build1/b001/exe/dowel"); err != nil || got != installed {
		t.Error(got, err)
	}
	t.Setenv("TMPDIR", folder)
	if got, err := lasting("/home/u/.cache/go-build/ab/0-d/dowel"); err == nil {
		t.Errorf("%s is not there for long", got)
	}
}

// Whoever makes dowel a server of a tool is told which of its other entries dowel offers too.
func TestStays(t *testing.T) {
	o := config.Options{Home: t.TempDir(), GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
	path := filepath.Join(o.Home, ".cursor/mcp.json")
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "dowel": {"command": "dowel"}, "other": {"command": "x"}}}`)
	if got := stays(path, "cursor", "dowel", o); got != "" {
		t.Error(got)
	}
	write(filepath.Join(o.Dir(), "dowel.json"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "dowel": {"command": "z"}}}`)
	if got := stays(path, "cursor", "dowel", o); !strings.Contains(got, " a, b would be there twice") || !strings.Contains(got, path) {
		t.Error(got)
	}
}
