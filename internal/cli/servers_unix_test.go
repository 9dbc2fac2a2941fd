//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/servers"
	"github.com/dowel-mcp/dowel/internal/cli/status"
)

// expectFailure runs dowel and checks its exit code and a part of its stderr.
func (u *testUser) expectFailure(code int, says string, words ...string) output {
	u.t.Helper()
	out := u.runDowel(words...)
	if out.code != code || !strings.Contains(out.stderr, says) {
		u.t.Errorf("dowel %s: exit code %d, want %d and %q\n%s%s", strings.Join(words, " "), out.code, code, says, out.stdout, out.stderr)
	}
	return out
}

// listStates returns the state of each server from servers list.
func (u *testUser) listStates() map[string]string {
	u.t.Helper()
	var all []struct{ Name, Status string }
	if err := json.Unmarshal([]byte(u.expectSuccess("", "servers", "list", "--json")), &all); err != nil {
		u.t.Fatal(err)
	}
	states := map[string]string{}
	for _, s := range all {
		states[s.Name] = s.Status
	}
	return states
}

// Without a running dowel, enable and disable work, and the other commands fail with the same
// error.
func TestServersWithoutDowel(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	for _, words := range []string{"status", "status kv", "servers restart kv", "servers logs kv", "servers reload"} {
		out := p.expectFailure(exit.Connection, "dowel: no dowel is running: start one with dowel up", strings.Fields(words)...)
		if strings.Contains(out.stderr, "no connection") {
			t.Errorf("%s: %s", words, out.stderr)
		}
	}
	p.expectSuccess("kv was switched off; dowel is not running; dowel up will not start it\n", "servers", "disable", "kv")
	if got := p.listStates(); got["kv"] != "disabled" || got["weather"] != "not running" {
		t.Errorf("%v", got)
	}
	p.expectSuccess("dowel is not running; dowel up starts these servers.", "servers", "list")
	p.expectFailure(exit.Usage, "there is no such server: wether; did you mean weather?", "servers", "disable", "wether")
	p.expectFailure(exit.Usage, "there is no such server: nope", "servers", "disable", "weather", "nope")
	if got := p.listStates(); got["weather"] != "not running" {
		t.Error("one of several was switched although another is unknown")
	}
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Disabled})
	p.stopDaemon()
	if out := p.expectSuccess("", "servers", "enable", "kv", "--json"); out != `{"server":"kv","did":"enable","running":false}`+"\n" {
		t.Error(out)
	}
	p.writeFile(p.userFile(), `{"mcpServers": {"mine": `+p.builtInEntry("everything", "")+`, "off": {"command": "x", "disabled": true}, "bad": {"comand": "x"}}}`)
	if got := p.listStates(); len(got) != 3 || got["mine"] != "not running" || got["off"] != "disabled" || got["bad"] != "needs configuration" {
		t.Errorf("%v", got)
	}
	p.expectSuccess("dowel.json:1:", "servers", "list")
	p.expectFailure(exit.Usage, "add it with dowel add kv", "servers", "enable", "kv")
	p.expectSuccess("off was switched on; dowel is not running; dowel up will start it\n", "servers", "enable", "off")
	p.expectSuccess("bad was switched on; dowel is not running; needs configuration: ", "servers", "enable", "bad")
	if got := p.listStates(); got["off"] != "not running" {
		t.Errorf("%v", got)
	}
}

// Changes to servers of a running dowel show the result.
func TestServersOfDowel(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"good": `+p.builtInEntry("kv", "")+`,
		"bad": {"command": "/bin/sh", "args": ["-c", "echo first words >&2; echo last words >&2; exit 1"]}}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"good": hub.Ready, "bad": hub.Failed})
	if out := p.expectSuccess("", "servers", "disable", "good"); out != "good was switched off\n" {
		t.Error(out)
	}
	p.expectFailure(exit.Connection, "no connection to good: it is disabled", "servers", "restart", "good")
	if out := p.expectSuccess("", "servers", "enable", "good"); !strings.HasPrefix(out, "good was switched on: ready, ") || strings.Contains(out, " 0 tools") {
		t.Error(out)
	}
	p.expectSuccess("good was restarted: ready, ", "servers", "restart", "good")
	var o servers.Outcome
	if err := json.Unmarshal([]byte(p.expectSuccess("", "servers", "restart", "good", "--json")), &o); err != nil ||
		o.Server != "good" || o.Did != "restart" || !o.Running || o.Status != hub.Ready {
		t.Errorf("%v, %+v", err, o)
	}
	out := p.expectFailure(exit.Connection, "no connection to bad: restarted: failed: ", "servers", "restart", "good", "bad")
	if !strings.Contains(out.stdout, "good was restarted: ready") {
		t.Errorf("%+v", out)
	}
	for _, words := range []string{"disable god", "restart god", "logs god"} {
		p.expectFailure(exit.Usage, "there is no such server: god; did you mean good?", append([]string{"servers"}, strings.Fields(words)...)...)
	}
	if got := p.listStates(); got["good"] != "ready" || len(got) != 2 {
		t.Errorf("%v", got)
	}
	p.expectSuccess("SERVER", "servers", "ls")
	p.expectSuccess(p.userFile()+" was read again: 2 servers.", "servers", "reload")
}

// status NAME shows everything about a server. The server writes its lines at once, so that they
// are whole during the next attempt too.
func TestStatusOfOne(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {
		"good": `+p.builtInEntry("kv", "")+`,
		"bad": {"command": "/bin/sh", "args": ["-c", "printf line-%s.\\\\n 1 2 3 4 5 6 7 8 9 10 11 12 >&2; exit 1"]}}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"good": hub.Ready, "bad": hub.Failed})
	good := p.expectSuccess("good\n", "status", "good")
	for _, part := range []string{"ready for ", "kv 1.0.0", "modern", " tools, ", "serve kv", p.userFile() + ":2:"} {
		if !strings.Contains(good, part) {
			t.Errorf("no %q in\n%s", part, good)
		}
	}
	if strings.Contains(good, " 0 tools") || strings.Contains(good, "problem") {
		t.Error(good)
	}
	bad := p.expectSuccess("bad\n", "status", "bad")
	for _, part := range []string{"cause ", "problem ", "advice ", "line-12.", "/bin/sh"} {
		if !strings.Contains(bad, part) {
			t.Errorf("no %q in\n%s", part, bad)
		}
	}
	var s status.FullStatus
	if err := json.Unmarshal([]byte(p.expectSuccess("", "status", "bad", "--json")), &s); err != nil ||
		s.Name != "bad" || s.Problem == "" || s.Advice == "" || len(s.Stderr) != 10 || s.Stderr[9] != "line-12." || s.File == "" {
		t.Errorf("%v, %+v", err, s)
	}
	p.expectFailure(exit.Usage, "there is no such server: god; did you mean good?", "status", "god")
}
