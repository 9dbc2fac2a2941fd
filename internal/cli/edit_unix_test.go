//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// text is what a file holds; empty if it is not there.
func (p *person) text(path string) string {
	p.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(text)
}

// What is added is written into the user's own file, which is made where there is none, and everything else stays in it.
func TestServersAdd(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.ok("+ ", "servers", "add", "a", "--dry-run", "--", "npx", "-y", "x")
	if got := p.text(p.own()); got != "" {
		t.Errorf("a dry run has written %s", got)
	}
	p.ok("Written", "servers", "add", "a", "--", "npx", "-y", "x")
	info, err := os.Stat(p.own())
	if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(p.text(p.own()), `"command": "npx"`) {
		t.Fatalf("%v, %v, %s", info, err, p.text(p.own()))
	}
	const before = "{\n\t// mine\n\t\"x-other\": {\"keep\": [1, 2,]},\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\": \"b\", \"odd\": null}, // of b\n\t},\n}"
	p.write(p.own(), before)
	p.ok("Written", "servers", "add", "docs", "--url", "https://example.com/mcp", "-H", "Authorization: Bearer ${TOKEN}")
	added := p.text(p.own())
	for _, part := range append(strings.Split(before, "\n")[:5:5], `"url": "https://example.com/mcp"`, `"Authorization": "Bearer ${TOKEN}"`) {
		if !strings.Contains(added, part) {
			t.Errorf("%q is not in\n%s", part, added)
		}
	}
	if out := p.run("servers", "add", "b", "--", "other"); out.code != exit.Usage || !strings.Contains(out.stderr, p.own()+":5:") || p.text(p.own()) != added {
		t.Errorf("%+v", out)
	}
	p.ok("Written", "servers", "remove", "docs")
	if got := p.text(p.own()); got != before {
		t.Errorf("there and back it is\n%s", got)
	}
	const broken = `{"mcpServers": {`
	p.write(p.own(), broken)
	if out := p.run("servers", "add", "c", "--", "c"); out.code == exit.OK || p.text(p.own()) != broken || !strings.Contains(out.stderr, "dowel.json is left as it was") {
		t.Errorf("%+v, and then\n%s", out, p.text(p.own()))
	}
	yaml := newPerson(t)
	path := filepath.Join(filepath.Dir(yaml.own()), "dowel.yaml")
	yaml.write(path, "# mine\nmcpServers:\n  b: {command: b} # of b\n")
	yaml.ok("Written: "+path, "servers", "add", "a", "--", "npx")
	if got := yaml.text(path); !strings.HasPrefix(got, "# mine\nmcpServers:\n  b: {command: b} # of b\n  a:") || yaml.text(yaml.own()) != "" {
		t.Errorf("%s", got)
	}
}

// What is removed is removed from the file that it counts in: what it has shadowed comes into force.
func TestServersRemove(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	portable := filepath.Join(p.project, ".mcp.json")
	p.write(p.shared(), `{"mcpServers": {"a": {"command": "shared"}, "b": {"command": "x"}}}`)
	p.write(portable, `{"mcpServers": {"a": {"command": "portable"}}, "other": true}`)
	p.write(p.own(), `{"mcpServers": {"a": {"command": "own"}}}`)
	for _, step := range []struct{ command, file, left string }{
		{"shared", p.shared(), `{"mcpServers": {"b": {"command": "x"}}}`},
		{"portable", portable, `{"mcpServers": {}, "other": true}`},
		{"own", p.own(), `{"mcpServers": {}}`},
	} {
		p.ok("command = "+step.command, "config", "explain", "a")
		before := p.text(step.file)
		p.ok("Written: "+step.file, "servers", "remove", "a")
		if got := p.text(step.file); got != step.left {
			t.Errorf("%s holds %s", step.file, got)
		}
		if kept := p.text(step.file + ".bak"); kept != before {
			t.Errorf("what was there before is not kept: %s", kept)
		}
	}
	if out := p.run("servers", "remove", "bb"); out.code != exit.Usage || !strings.Contains(out.stderr, "no server of the configuration is called bb") {
		t.Errorf("%+v", out)
	}
}

// A file that appears is taken up, and with one that is deleted its servers go; who looks is told, and nobody else notices.
func TestUpFollowsFilesThatComeAndGo(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"mine": `+p.served("everything", "")+`}}`)
	p.up()
	since := p.until(map[string]hub.Status{"mine": hub.Ready})["mine"].Since
	p.write(p.shared(), `{"mcpServers": {"theirs": `+p.served("kv", "")+`, "more": `+p.served("weather", "")+`}}`)
	p.until(map[string]hub.Status{"theirs": hub.NeedsTrust, "more": hub.NeedsTrust, "mine": hub.Ready})
	p.ok("allowed", "trust", "theirs", "--yes")
	p.until(map[string]hub.Status{"theirs": hub.Ready, "more": hub.NeedsTrust, "mine": hub.Ready})
	if err := os.Remove(p.shared()); err != nil {
		t.Fatal(err)
	}
	now := p.until(map[string]hub.Status{"mine": hub.Ready})
	if now["mine"].Since != since {
		t.Error("a server of another file was restarted")
	}
	for end := time.Now().Add(10 * time.Second); !strings.Contains(p.all(), "theirs: removed: dowel.json was removed"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody is told that the servers of the file have gone:\n" + p.all())
		}
	}
	if out := p.run("call", "theirs.get", "key=x"); out.code == exit.OK {
		t.Errorf("%+v", out)
	}
}

// A restart begins with what the files say now, those that are not watched among them; where they cannot be read, with what
// they said before.
func TestRestartReadsAnew(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	began, env := filepath.Join(p.home, "began"), filepath.Join(p.home, "values.env")
	entry := func(name string) string {
		return fmt.Sprintf(`{"mcpServers": {%q: {"command": "/bin/sh", "args": ["-c", "echo $VALUE >> %s; exec %s serve everything"], "envFile": %q}}}`, name, began, self(t), env)
	}
	p.write(env, "VALUE=one\n")
	p.write(p.own(), entry("s"))
	p.up()
	ready := map[string]hub.Status{"s": hub.Ready}
	since := p.until(ready)["s"].Since
	restart := func(want string) {
		t.Helper()
		p.ok("", "servers", "restart", "s")
		for end := time.Now().Add(20 * time.Second); p.until(ready)["s"].Since == since; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it is not restarted")
			}
		}
		since = p.until(ready)["s"].Since
		if values := strings.Fields(p.text(began)); values[len(values)-1] != want {
			t.Errorf("it was started with %v, want %s", values, want)
		}
	}
	p.write(env, "VALUE=two\n")
	restart("two")
	p.write(p.own(), `{"mcpServers": {"s": `)
	restart("two")
	if out := p.run("servers", "reload"); out.code == exit.OK || !strings.Contains(out.stderr, "dowel.json:1:") {
		t.Errorf("a file that cannot be read is not told of: %+v", out)
	}
	p.write(p.own(), entry("s"))
	p.write(env, "VALUE=three\n")
	restart("three")
	if out := p.run("servers", "restart", "none"); out.code == exit.OK || !strings.Contains(out.stderr, "there is no such server: none") {
		t.Errorf("%+v", out)
	}
}
