//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// --wire with a server of the running dowel shows the messages to dowel and those to the server.
// Secrets are masked on both legs.
func TestWireShowsBothLegs(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"ev": `+p.builtInEntry("everything", "")+`}}`)
	call := []string{"call", "ev.echo", "message=postgres://u:swordfish@h/db", "--wire"}
	alone := p.runDowel(call...)
	if alone.code != 0 || !strings.HasPrefix(alone.stderr, "→ ") || strings.Contains(alone.stderr, "dowel → ev") || strings.Contains(alone.stderr, "swordfish") {
		t.Errorf("without a running dowel: %+v", alone)
	}
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"ev": hub.Ready})
	out := p.runDowel(call...)
	for _, want := range []string{"command → dowel ", "command ← dowel ", "  dowel → ev ", "  dowel ← ev "} {
		found := false
		for line := range strings.Lines(out.stderr) {
			found = found || strings.HasPrefix(line, want) && strings.Contains(line, "postgres://u:****@h/db")
		}
		if !found {
			t.Errorf("no line %q with the call:\n%s", want, out.stderr)
		}
	}
	if out.code != 0 || strings.Contains(out.stderr, "swordfish") {
		t.Errorf("%+v", out)
	}
}

// With --json each message names its leg.
func TestWireLegsAsJSON(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"ev": `+p.builtInEntry("everything", "")+`}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"ev": hub.Ready})
	out := p.runDowel("call", "ev.echo", "message=hi", "--wire", "--json")
	calls := map[string]int{}
	for line := range strings.Lines(out.stderr) {
		var l struct {
			Wire, From, To string
			Frame          struct{ Method string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if l.Frame.Method == "tools/call" {
			calls[l.From+" "+l.Wire+" "+l.To]++
		}
	}
	if len(calls) != 2 || calls["command sent dowel"] != 1 || calls["dowel sent ev"] != 1 {
		t.Errorf("%v:\n%s", calls, out.stderr)
	}
}

// A filter chooses frames on both legs, in the language of dowel wire.
func TestWireFilter(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"ev": `+p.builtInEntry("everything", "")+`}}`)
	out := p.runDowel("call", "ev.echo", "message=hi", "--wire=tool:echo kind:response")
	if lines := strings.Split(strings.TrimSpace(out.stderr), "\n"); out.code != 0 || len(lines) != 1 || !strings.HasPrefix(lines[0], "← ") {
		t.Errorf("without a running dowel: %+v", out)
	}
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"ev": hub.Ready})
	for text, want := range map[string][]string{
		"method:tools/call":                 {"command → dowel", "dowel → ev", "dowel ← ev", "command ← dowel"},
		"method:tools/call kind:request":    {"command → dowel", "dowel → ev"},
		"method:tools/call leg:client":      {"command → dowel", "command ← dowel"},
		"method:tools/call leg:server":      {"dowel → ev", "dowel ← ev"},
		"method:tools/call dir:in":          {"command → dowel", "dowel ← ev"},
		"args.message:hi kind:request":      {"command → dowel", "dowel → ev"},
		"method:tools/call args.message:no": nil,
	} {
		out := p.runDowel("call", "ev.echo", "message=hi", "--wire="+text)
		if n := strings.Count(out.stderr, "ms {"); out.code != 0 || n != len(want) {
			t.Errorf("%s: %d messages, want %d:\n%s", text, n, len(want), out.stderr)
		}
		for _, leg := range want {
			if !strings.Contains(out.stderr, leg) {
				t.Errorf("%s: no line of %s:\n%s", text, leg, out.stderr)
			}
		}
	}
	if out := p.runDowel("call", "ev.echo", "message=hi", "--wire=serverr:x"); out.code != exit.Usage || !strings.Contains(out.stderr, `unknown key "serverr"`) {
		t.Errorf("a wrong filter: %+v", out)
	}
}

// If nothing of the past matches, dowel wire says so on stderr, and --json writes nothing.
func TestWireWithoutMatch(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"ev": `+p.builtInEntry("everything", "")+`}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"ev": hub.Ready})
	for _, test := range []struct{ stderr, words string }{
		{"The filter matches none of the ", "wire --past server:nothing"},
		{" messages.", "wire --past --frames server:nothing"},
		{"", "wire --past --json server:nothing"},
	} {
		out := p.runDowel(strings.Fields(test.words)...)
		if out.code != 0 || out.stdout != "" || !strings.Contains(out.stderr, test.stderr) || test.stderr == "" && out.stderr != "" {
			t.Errorf("dowel %s: %+v", test.words, out)
		}
	}
}
