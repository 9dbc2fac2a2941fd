//go:build unix

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/servers"
)

// A built-in server is added by its name, as an entry that runs this dowel; the first server ends those that came by themselves.
func TestAddBuiltIn(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.fails(exit.Usage, "kv is built into dowel and stands in no file; it can be switched off with dowel servers disable kv", "servers", "remove", "kv")
	p.fails(exit.Usage, "did you mean memory?", "servers", "add", "kv", "-O", "memry=true")
	p.fails(exit.Usage, "--option is for built-in servers", "servers", "add", "kv", "-O", "memory=true", "--", "npx")
	p.fails(exit.Usage, "say how mine is reached", "servers", "add", "mine")
	p.fails(exit.Usage, "write a name", "servers", "add", "--", "npx")
	if got := p.text(p.own()); got != "" {
		t.Fatal(got)
	}
	out := p.ok("kv: no dowel is running; dowel up starts it", "servers", "add", "kv", "-O", "memory=true")
	if !strings.Contains(out, "are not started by themselves any more") || !strings.Contains(out, "dowel servers add everything") {
		t.Error(out)
	}
	var file struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal([]byte(p.text(p.own())), &file); err != nil {
		t.Fatal(err)
	}
	if e := file.MCPServers["kv"]; e.Command != self(t) || strings.Join(e.Args, " ") != "serve kv memory=true" {
		t.Errorf("%+v", e)
	}
	if out := p.ok("everything: ", "servers", "add", "everything"); strings.Contains(out, "any more") {
		t.Error(out)
	}
	other := newPerson(t)
	other.ok(filepath.Join(other.project, "notes.db"), "servers", "add", "kv", "-O", "path=notes.db", "--dry-run")
}

// An added server is told of with what the running dowel makes of it.
func TestAddToDowel(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.up()
	p.until(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	out := p.ok("kv: ready, ", "servers", "add", "kv", "-O", "memory=true")
	if strings.Contains(out, " 0 tools") || !strings.Contains(out, "any more") {
		t.Error(out)
	}
	p.until(map[string]hub.Status{"kv": hub.Ready})
	p.ok("bad: failed: ", "servers", "add", "bad", "--", "/bin/sh", "-c", "exit 1")
	var added servers.Addition
	if err := json.Unmarshal([]byte(p.ok("", "servers", "add", "more.of it", "--json", "--", self(t), "serve", "everything")), &added); err != nil ||
		added.File != p.own() || !added.Changed || added.Server != "more.of it" || !added.Running || added.Status != hub.Ready ||
		len(added.Warnings) != 1 || added.Notes != nil {
		t.Errorf("%v, %+v", err, added)
	}
}

// Names are warned of that have another form on the wire, and with --config the entry goes into that file.
func TestAddNamesAndFiles(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for _, name := range []string{"my server", "a.b", "a__b", "a_", "dowel", "über"} {
		p.fails(exit.OK, "does not read well", "servers", "add", name, "--dry-run", "--", "npx")
	}
	for _, name := range []string{"a", "my-server_2", "A_b"} {
		if out := p.run("servers", "add", name, "--dry-run", "--", "npx"); out.code != exit.OK || out.stderr != "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
	empty, mine, code := filepath.Join(p.home, "empty.json"), filepath.Join(p.home, "mine.yaml"), filepath.Join(p.home, ".vscode", "mcp.json")
	p.write(empty, "")
	p.write(mine, "mcpServers: {}\n")
	p.write(code, `{"servers": {}}`)
	p.ok("Written: "+empty, "servers", "add", "a", "--config", empty, "--", "npx")
	p.ok("Written: "+mine, "servers", "add", "a", "--config", mine, "--", "npx")
	p.fails(exit.Usage, "writes servers in another way", "servers", "add", "a", "--config", code, "--", "npx")
	p.fails(exit.Usage, "write into one file", "servers", "add", "b", "--config", empty, "--config", mine, "--", "npx")
	if p.text(p.own()) != "" || p.text(code) != `{"servers": {}}` || !strings.Contains(p.text(empty), "npx") || !strings.Contains(p.text(mine), "npx") {
		t.Errorf("%s %s %s %s", p.text(p.own()), p.text(code), p.text(empty), p.text(mine))
	}
	for _, verb := range []string{"add", "remove"} {
		if out := p.ok("--config file", "servers", verb, "--help"); strings.Contains(out, "instead of all others") {
			t.Error(out)
		}
	}
}
