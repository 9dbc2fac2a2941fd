package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// trustProject is a project with one server. Tests change its files.
type trustProject struct {
	t      *testing.T
	folder string
}

func newTrustProject(t *testing.T) *trustProject {
	return &trustProject{t, t.TempDir()}
}

func (p *trustProject) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// facts returns the facts of a server with the given entry.
func (p *trustProject) facts(entry string) TrustFacts {
	p.t.Helper()
	file := File{Path: filepath.Join(p.folder, "dowel.json"), Scope: Project}
	c := fileContents{File: file}.parseText([]byte(`{"mcpServers": {"s": `+entry+`}}`), lookupDialect(Own), Options{GOOS: "linux"})
	if len(c.servers) != 1 || hasErrors(c.problems) {
		p.t.Fatalf("%d servers, %v", len(c.servers), c.problems)
	}
	return c.servers[0].TrustFacts(Variables{Workspace: p.folder, Home: "/home/me", GOOS: "linux", Env: func(string) (string, bool) { return "", false }})
}

func TestTrustFacts(t *testing.T) {
	t.Parallel()
	p := newTrustProject(t)
	got := p.facts(`{"command": "npx", "args": ["-y", "@acme/mcp", "--token", "hunter22"], "env": {"TOKEN": "${TOKEN}", "LEVEL": "info", "NODE_OPTIONS": "--x"}}`).Lines()
	want := []string{"kind stdio", "command npx", "args -y @acme/mcp --token ****", "env LEVEL",
		"env NODE_OPTIONS (can make programs run other code)", "env TOKEN from TOKEN"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = p.facts(`{"url": "https://h/mcp", "type": "http", "headers": {"Authorization": "Bearer ${TOKEN}", "X-File": "${file:/a b}"},
		"headersHelper": "a\u001b[2J", "oauth": {"tokenUrl": "https://t"}}`).Lines()
	want = []string{"kind http", "url https://h/mcp", "header Authorization from TOKEN", `header X-File from "file:/a b"`, `headersHelper "a\x1b[2J"`, "login token https://t"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every change of an entry needs new trust, and the change names what differs but shows no value.
func TestTrustOfEntry(t *testing.T) {
	t.Parallel()
	p, key := newTrustProject(t), []byte("key")
	const entry = `{"command": "npx", "args": ["-y", "@acme/mcp"], "env": {"TOKEN": "${TOKEN}", "PYTHONUSERBASE": "/first"}`
	agreed := p.facts(entry+`}`).Agree(key, false)
	for _, same := range []string{entry + `}`, entry + `, "timeout": "1s", "alwaysAllow": ["*"], "lazy": true}`} {
		if changes := p.facts(same).Changes(agreed, key); changes != nil {
			t.Errorf("%s asks for trust: %q", same, changes)
		}
	}
	for other, want := range map[string]string{
		strings.Replace(entry, "/first", "/second-value", 1) + `}`:                             "~ env PYTHONUSERBASE (can make programs run other code) has another value",
		strings.Replace(entry, "${TOKEN}", "Bearer ${TOKEN}", 1) + `}`:                         "~ env TOKEN from TOKEN has another value",
		strings.Replace(entry, "${TOKEN}", "${AWS_SECRET}", 1) + `}`:                           "- env TOKEN from TOKEN, + env TOKEN from AWS_SECRET",
		strings.Replace(entry, "@acme", "@evil", 1) + `}`:                                      "- args -y @acme/mcp, + args -y @evil/mcp",
		strings.Replace(entry, `"-y", "@acme/mcp"`, `"-y @acme"`, 1) + `}`:                     `- args -y @acme/mcp, + args "-y @acme"`,
		entry + `, "keepDetached": true}`:                                                      "+ keepDetached: its daemons go on when it ends",
		entry + `, "cwd": "/tmp"}`:                                                             "+ cwd /tmp",
		entry + `, "envFile": "/tmp/.env"}`:                                                    "+ envFile /tmp/.env",
		`{"command": "npx", "args": ["-y", "@acme/mcp"], "env": {"PYTHONUSERBASE": "/first"}}`: "- env TOKEN from TOKEN",
	} {
		changes := strings.Join(p.facts(other).Changes(agreed, key), ", ")
		if changes != want {
			t.Errorf("%s: %q, want %q", other, changes, want)
		}
	}
	if text := fmt.Sprint(agreed); strings.Contains(text, "/first") {
		t.Errorf("the agreement holds a value: %s", text)
	}
	if p.facts(entry+`}`).Changes(agreed, []byte("another key")) == nil {
		t.Error("the digests do not depend on the key")
	}
}

// A hidden part of an argument counts, too.
func TestTrustOfHiddenPart(t *testing.T) {
	t.Parallel()
	p, key := newTrustProject(t), []byte("key")
	agreed := p.facts(`{"command": "x", "args": ["--token", "hunter22"]}`).Agree(key, false)
	got := p.facts(`{"command": "x", "args": ["--token", "hunter23"]}`).Changes(agreed, key)
	if want := []string{"~ args --token **** has changed in the hidden part"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The content of an env file, of a script and of a program in the project counts, however the entry
// names it. Data does not count, nor do other files.
func TestTrustOfFiles(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "tool.sh")
	for name, tt := range map[string]struct {
		entry, file string
		counts      bool
	}{
		"env file":             {`{"command": "x", "envFile": ".env"}`, ".env", true},
		"env file by variable": {`{"command": "x", "envFile": "${workspaceFolder}/conf/.env"}`, "conf/.env", true},
		"program":              {`{"command": "./bin/server"}`, "bin/server", true},
		"bare script":          {`{"command": "server.py"}`, "server.py", true},
		"argument":             {`{"command": "node", "args": ["dist/index.js"]}`, "dist/index.js", true},
		"any name":             {`{"command": "/usr/bin/python3.12", "args": ["-u", "server", "x"]}`, "server", true},
		"flag":                 {`{"command": "x", "args": ["--require=./hook.cjs"]}`, "hook.cjs", true},
		"after uv run":         {`{"command": "uv", "args": ["run", "server.py"]}`, "server.py", true},
		"folder":               {`{"command": "node", "args": ["a.js"], "cwd": "sub"}`, "sub/a.js", true},
		"module":               {`{"command": "python", "args": ["-m", "pkg.main"]}`, "pkg/main.py", true},
		"command line":         {`{"command": "sh", "args": ["-c", "cd . && ./run.sh; true"]}`, "run.sh", true},
		"file variable":        {`{"command": "x", "env": {"NODE_OPTIONS": "${file:opts}"}}`, "opts", true},
		"headers helper":       {`{"url": "https://h/mcp", "headersHelper": "./token.sh --now"}`, "token.sh", true},
		"data":                 {`{"command": "x", "args": ["--db", "data.db"]}`, "data.db", false},
		"import":               {`{"command": "node", "args": ["a.js"]}`, "lib.js", false},
		"header":               {`{"url": "https://h/mcp", "headers": {"A": "${file:opts}"}}`, "opts", false},
		"outside":              {`{"command": "` + outside + `"}`, outside, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, key := newTrustProject(t), []byte("key")
			write := func(text string) {
				if !filepath.IsAbs(tt.file) {
					p.write(tt.file, text)
				} else if err := os.WriteFile(tt.file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("one")
			seen := p.facts(tt.entry)
			agreed, wide := seen.Agree(key, false), seen.Agree(key, true)
			write("two")
			now := p.facts(tt.entry)
			if changes := now.Changes(agreed, key); (changes != nil) != tt.counts ||
				tt.counts && !slices.Equal(changes, []string{"~ file " + tt.file + " has other content"}) {
				t.Errorf("%q, want a change: %v", changes, tt.counts)
			}
			if changes := now.Changes(wide, key); changes != nil {
				t.Errorf("the folder is trusted, and still: %q", changes)
			}
			if now.HasFiles() != tt.counts {
				t.Errorf("HasFiles is %v", now.HasFiles())
			}
			if text := fmt.Sprint(agreed); strings.Contains(text, "one") {
				t.Errorf("the agreement holds content: %s", text)
			}
		})
	}
}

// A disappearing file does not count as a change, but its return with other content does. Its path
// stays among the files to watch.
func TestTrustOfMissingFile(t *testing.T) {
	t.Parallel()
	p, key := newTrustProject(t), []byte("key")
	const entry = `{"command": "node", "args": ["dist/a.js"]}`
	p.write("dist/a.js", "one")
	agreed := p.facts(entry).Agree(key, false)
	path := filepath.Join(p.folder, "dist", "a.js")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if gone := p.facts(entry); gone.Changes(agreed, key) != nil || !slices.Contains(gone.Files(), path) {
		t.Errorf("%q, %q", gone.Changes(agreed, key), gone.Files())
	}
	p.write("dist/a.js", "two")
	if p.facts(entry).Changes(agreed, key) == nil {
		t.Error("a new file is trusted")
	}
}

// A symbolic link to another file is other content.
func TestTrustOfLink(t *testing.T) {
	t.Parallel()
	p, key := newTrustProject(t), []byte("key")
	outside := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(p.folder, "run.sh")
	point := func(to string) {
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(outside, to), link); err != nil {
			t.Fatal(err)
		}
	}
	point("one")
	agreed := p.facts(`{"command": "./run.sh"}`).Agree(key, false)
	point("two")
	if p.facts(`{"command": "./run.sh"}`).Changes(agreed, key) == nil {
		t.Error("the link leads elsewhere, and is trusted")
	}
}

// The agreement of an older dowel holds for the facts that it knew.
func TestLegacyTrust(t *testing.T) {
	t.Parallel()
	const entry = `{"command": "npx", "args": ["--key", "hunter22"], "env": {"LEVEL": "info", "NODE_OPTIONS": "--first"}}`
	old := loadOnlyServer(t, `{"mcpServers": {"s": `+entry+`}}`)
	facts := []string{"kind stdio", "command npx", "args --key hunter22", "env LEVEL", "env NODE_OPTIONS = --first"}
	if got := old.legacyFacts(); !reflect.DeepEqual(got, facts) {
		t.Errorf("got %q, want %q", got, facts)
	}
	agreed := Agreement{Hash: hashJSON(facts), Facts: facts}
	for other, want := range map[string][]string{
		entry: nil,
		strings.Replace(entry, "info", "debug", 1):     nil,
		strings.Replace(entry, "--first", "--evil", 1): {"~ env NODE_OPTIONS has changed in the hidden part"},
		strings.Replace(entry, "npx", "uvx", 1):        {"- command npx", "+ command uvx"},
	} {
		s := loadOnlyServer(t, `{"mcpServers": {"s": `+other+`}}`)
		if got := s.LegacyChanges(agreed); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", other, got, want)
		}
	}
}
