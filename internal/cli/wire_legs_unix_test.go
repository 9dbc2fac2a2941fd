//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
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
