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

// A built-in server is added by name, as an entry that runs this dowel. After the first added
// server, dowel no longer starts its built-in ones.
func TestAddBuiltIn(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.expectFailure(exit.Usage, "kv is built into dowel and not in your configuration; switch it off with dowel servers disable kv", "servers", "remove", "kv")
	p.expectFailure(exit.Usage, "did you mean memory?", "servers", "add", "kv", "-O", "memry=true")
	p.expectFailure(exit.Usage, "--option is for built-in servers", "servers", "add", "kv", "-O", "memory=true", "--", "npx")
	p.expectFailure(exit.Usage, "give the command of mine after --", "servers", "add", "mine")
	p.expectFailure(exit.Usage, "name the server", "servers", "add", "--", "npx")
	if got := p.readText(p.userFile()); got != "" {
		t.Fatal(got)
	}
	out := p.expectSuccess("kv: dowel is not running; dowel up starts the server", "servers", "add", "kv", "-O", "memory=true")
	if !strings.Contains(out, "no longer starts its built-in servers") || !strings.Contains(out, "dowel add everything") {
		t.Error(out)
	}
	var file struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal([]byte(p.readText(p.userFile())), &file); err != nil {
		t.Fatal(err)
	}
	if e := file.MCPServers["kv"]; e.Command != testBinary(t) || strings.Join(e.Args, " ") != "serve kv memory=true" {
		t.Errorf("%+v", e)
	}
	if out := p.expectSuccess("everything: ", "servers", "add", "everything"); strings.Contains(out, "no longer") {
		t.Error(out)
	}
	other := newTestUser(t)
	other.expectSuccess(filepath.Join(other.project, "notes.db"), "servers", "add", "kv", "-O", "path=notes.db", "--dry-run")
}

// servers add shows whether the running dowel could start the new server.
func TestAddToDowel(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	out := p.expectSuccess("kv: ready, ", "servers", "add", "kv", "-O", "memory=true")
	if strings.Contains(out, " 0 tools") || !strings.Contains(out, "no longer") {
		t.Error(out)
	}
	p.awaitStates(map[string]hub.Status{"kv": hub.Ready})
	p.expectSuccess("bad: failed: ", "servers", "add", "bad", "--", "/bin/sh", "-c", "exit 1")
	var added servers.Addition
	if err := json.Unmarshal([]byte(p.expectSuccess("", "servers", "add", "more.of it", "--json", "--", testBinary(t), "serve", "everything")), &added); err != nil ||
		added.File != p.userFile() || !added.Changed || added.Server != "more-of-it" || !added.Running || added.Status != hub.Ready ||
		len(added.Notes) != 1 || !strings.Contains(p.readText(p.userFile()), `"title": "more.of it"`) {
		t.Errorf("%v, %+v", err, added)
	}
}

// servers add writes names that tool names contain unchanged, and keeps the original as the title.
// With --config, it writes to that file.
func TestAddNamesAndFiles(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	for name, fitted := range map[string]string{"my server": "my-server", "a.b": "a-b", "a__b": "a-b", "a_": "a", "dowel": "dowel-server", "über": "ber"} {
		checkText(t, p.expectSuccess("", "servers", "add", name, "--dry-run", "--", "npx"), []string{`"` + fitted + `": {`, `"title": "` + name + `"`}, nil)
	}
	for _, name := range []string{"a", "my-server_2", "A_b"} {
		if out := p.runDowel("servers", "add", name, "--dry-run", "--", "npx"); out.code != exit.OK || out.stderr != "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
	empty, mine, code := filepath.Join(p.home, "empty.json"), filepath.Join(p.home, "mine.yaml"), filepath.Join(p.home, ".vscode", "mcp.json")
	p.writeFile(empty, "")
	p.writeFile(mine, "mcpServers: {}\n")
	p.writeFile(code, `{"servers": {}}`)
	p.expectSuccess("Written: "+empty, "servers", "add", "a", "--config", empty, "--", "npx")
	p.expectSuccess("Written: "+mine, "servers", "add", "a", "--config", mine, "--", "npx")
	p.expectFailure(exit.Usage, "which dowel add cannot write", "servers", "add", "a", "--config", code, "--", "npx")
	p.expectFailure(exit.Usage, "want one file", "servers", "add", "b", "--config", empty, "--config", mine, "--", "npx")
	if p.readText(p.userFile()) != "" || p.readText(code) != `{"servers": {}}` || !strings.Contains(p.readText(empty), "npx") || !strings.Contains(p.readText(mine), "npx") {
		t.Errorf("%s %s %s %s", p.readText(p.userFile()), p.readText(code), p.readText(empty), p.readText(mine))
	}
	for _, verb := range []string{"add", "remove"} {
		if out := p.expectSuccess("--config file", "servers", verb, "--help"); strings.Contains(out, "instead of all others") {
			t.Error(out)
		}
	}
}
