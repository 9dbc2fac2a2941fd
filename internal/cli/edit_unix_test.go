//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// readText returns the text of a file, or "" if the file is missing.
func (u *testUser) readText(path string) string {
	u.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		u.t.Fatal(err)
	}
	return string(text)
}

// servers add writes to the user's file, creates it if it is missing, and keeps the rest unchanged.
func TestServersAdd(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.expectSuccess("+ ", "servers", "add", "a", "--dry-run", "--", "npx", "-y", "x")
	if got := p.readText(p.userFile()); got != "" {
		t.Errorf("a dry run has written %s", got)
	}
	p.expectSuccess("Written", "servers", "add", "a", "--", "npx", "-y", "x")
	info, err := os.Stat(p.userFile())
	if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(p.readText(p.userFile()), `"command": "npx"`) {
		t.Fatalf("%v, %v, %s", info, err, p.readText(p.userFile()))
	}
	const before = "{\n\t// mine\n\t\"x-other\": {\"keep\": [1, 2,]},\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\": \"b\", \"odd\": null}, // of b\n\t},\n}"
	p.writeFile(p.userFile(), before)
	p.expectSuccess("Written", "servers", "add", "docs", "--url", "https://example.com/mcp", "-H", "Authorization: Bearer ${TOKEN}")
	added := p.readText(p.userFile())
	for _, part := range append(strings.Split(before, "\n")[:5:5], `"url": "https://example.com/mcp"`, `"Authorization": "Bearer ${TOKEN}"`) {
		if !strings.Contains(added, part) {
			t.Errorf("%q is not in\n%s", part, added)
		}
	}
	if out := p.runDowel("servers", "add", "b", "--", "other"); out.code != exit.Usage || !strings.Contains(out.stderr, p.userFile()+":5:") || p.readText(p.userFile()) != added {
		t.Errorf("%+v", out)
	}
	p.expectSuccess("Written", "servers", "remove", "docs")
	if got := p.readText(p.userFile()); got != before {
		t.Errorf("there and back it is\n%s", got)
	}
	const broken = `{"mcpServers": {`
	p.writeFile(p.userFile(), broken)
	if out := p.runDowel("servers", "add", "c", "--", "c"); out.code == exit.OK || p.readText(p.userFile()) != broken || !strings.Contains(out.stderr, "dowel.json is unchanged") {
		t.Errorf("%+v, and then\n%s", out, p.readText(p.userFile()))
	}
	yaml := newTestUser(t)
	path := filepath.Join(filepath.Dir(yaml.userFile()), "dowel.yaml")
	yaml.writeFile(path, "# mine\nmcpServers:\n  b: {command: b} # of b\n")
	yaml.expectSuccess("Written: "+path, "servers", "add", "a", "--", "npx")
	if got := yaml.readText(path); !strings.HasPrefix(got, "# mine\nmcpServers:\n  b: {command: b} # of b\n  a:") || yaml.readText(yaml.userFile()) != "" {
		t.Errorf("%s", got)
	}
}

// servers remove edits the file with the effective entry. A shadowed entry then takes effect.
func TestServersRemove(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	portable := filepath.Join(p.project, ".mcp.json")
	p.writeFile(p.projectFile(), `{"mcpServers": {"a": {"command": "shared"}, "b": {"command": "x"}}}`)
	p.writeFile(portable, `{"mcpServers": {"a": {"command": "portable"}}, "other": true}`)
	p.writeFile(p.userFile(), `{"mcpServers": {"a": {"command": "own"}}}`)
	for _, step := range []struct{ command, file, left string }{
		{"shared", p.projectFile(), `{"mcpServers": {"b": {"command": "x"}}}`},
		{"portable", portable, `{"mcpServers": {}, "other": true}`},
		{"own", p.userFile(), `{"mcpServers": {}}`},
	} {
		p.expectSuccess("command = "+step.command, "config", "explain", "a")
		before := p.readText(step.file)
		p.expectSuccess("Written: "+step.file, "servers", "remove", "a")
		if got := p.readText(step.file); got != step.left {
			t.Errorf("%s holds %s", step.file, got)
		}
		if kept := p.readText(step.file + ".bak"); kept != before {
			t.Errorf("what was there before is not kept: %s", kept)
		}
	}
	if out := p.runDowel("servers", "remove", "bb"); out.code != exit.Usage || !strings.Contains(out.stderr, "the configuration has no server named bb") {
		t.Errorf("%+v", out)
	}
}

// A new file starts its servers and a deleted file ends them, while the other servers keep running.
func TestUpFollowsFilesThatComeAndGo(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"mine": `+p.builtInEntry("everything", "")+`}}`)
	p.startDaemon()
	since := p.awaitStates(map[string]hub.Status{"mine": hub.Ready})["mine"].Since
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": `+p.builtInEntry("kv", "")+`, "more": `+p.builtInEntry("weather", "")+`}}`)
	p.awaitStates(map[string]hub.Status{"theirs": hub.NeedsTrust, "more": hub.NeedsTrust, "mine": hub.Ready})
	p.expectSuccess("allowed", "trust", "theirs", "--yes")
	p.awaitStates(map[string]hub.Status{"theirs": hub.Ready, "more": hub.NeedsTrust, "mine": hub.Ready})
	if err := os.Remove(p.projectFile()); err != nil {
		t.Fatal(err)
	}
	now := p.awaitStates(map[string]hub.Status{"mine": hub.Ready})
	if now["mine"].Since != since {
		t.Error("a server of another file was restarted")
	}
	polltest.Until(t, "a message that the file's servers have gone", func() bool {
		return strings.Contains(p.output(), "theirs: removed: dowel.json was removed")
	})
	if out := p.runDowel("call", "theirs.get", "key=x"); out.code == exit.OK {
		t.Errorf("%+v", out)
	}
}

// A restart applies the current files, including files that dowel does not watch. If they
// cannot be read, it applies their last content.
func TestRestartReadsAnew(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	began, env := filepath.Join(p.home, "began"), filepath.Join(p.home, "values.env")
	entry := func(name string) string {
		return fmt.Sprintf(`{"mcpServers": {%q: {"command": "/bin/sh", "args": ["-c", "echo $VALUE >> %s; exec %s serve everything"], "envFile": %q}}}`, name, began, testBinary(t), env)
	}
	p.writeFile(env, "VALUE=one\n")
	p.writeFile(p.userFile(), entry("s"))
	p.startDaemon()
	ready := map[string]hub.Status{"s": hub.Ready}
	since := p.awaitStates(ready)["s"].Since
	restart := func(want string) {
		t.Helper()
		p.expectSuccess("", "servers", "restart", "s")
		polltest.Until(t, "a restart", func() bool { return p.awaitStates(ready)["s"].Since != since })
		since = p.awaitStates(ready)["s"].Since
		if values := strings.Fields(p.readText(began)); values[len(values)-1] != want {
			t.Errorf("it was started with %v, want %s", values, want)
		}
	}
	p.writeFile(env, "VALUE=two\n")
	restart("two")
	p.writeFile(p.userFile(), `{"mcpServers": {"s": `)
	restart("two")
	if out := p.runDowel("servers", "reload"); out.code == exit.OK || !strings.Contains(out.stderr, "dowel.json:1:") {
		t.Errorf("a file that cannot be read is not mentioned: %+v", out)
	}
	p.writeFile(p.userFile(), entry("s"))
	p.writeFile(env, "VALUE=three\n")
	restart("three")
	if out := p.runDowel("servers", "restart", "none"); out.code == exit.OK || !strings.Contains(out.stderr, "there is no such server: none") {
		t.Errorf("%+v", out)
	}
}
