//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// A list reports a server that is down: as an error if it is the only one, otherwise as a warning.
func TestServersThatAreDown(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`, "bad": {"command": "/bin/sh", "args": ["-c", "echo no database >&2; exit 3"]}}}`)
	check := func(when string) {
		t.Helper()
		all := p.runDowel("tools")
		if all.code != 0 || !strings.Contains(all.stdout, "one__echo") || !strings.Contains(all.stderr, "bad: failed") || !strings.Contains(all.stderr, "dowel doctor bad") {
			t.Errorf("%s: %d\n%s%s", when, all.code, all.stdout, all.stderr)
		}
		for _, words := range [][]string{{"tools", "bad"}, {"prompts", "bad"}, {"call", "bad.thing"}} {
			if one := p.runDowel(words...); one.code != exit.Connection || !strings.Contains(one.stderr, "no database") {
				t.Errorf("%s: %v: exit code %d\n%s%s", when, words, one.code, one.stdout, one.stderr)
			}
		}
	}
	check("nothing runs")
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"one": hub.Ready, "bad": hub.Failed})
	check("a dowel runs")
}
