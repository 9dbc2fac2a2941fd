//go:build unix

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/wirename"
)

// Approvals, audit records and messages use a server's own name, even if its name on the wire
// differs.
func TestApprovalsOfChangedNames(t *testing.T) {
	t.Parallel()
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("through a running dowel: %v", through), func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			call := `{"calls": [{"name": "` + wirename.Of("my.server", "set") + `", "arguments": {"key": "a", "value": "b"}}]}`
			m := startModel(t, `{"turns": [`+call+`, `+call+`, {"expect": ["stored"], "text": "stored"}]}`)
			audit := p.writeConfig(m)
			p.writeFile(p.userFile(), strings.Replace(p.readText(p.userFile()), `"keys": {`, `"my.server": {`, 1))
			if through {
				p.startDaemon()
			}
			needed := p.runDowel("run", "Store it.")
			if needed.code != exit.Approval || !strings.Contains(needed.stderr, "dowel trust --tool my.server.set") {
				t.Errorf("%+v", needed)
			}
			p.expectSuccess("my.server.set no longer needs an approval", "trust", "--tool", "my.server.set")
			p.expectSuccess("stored\n", "run", "Store it.")
			by := map[string]bool{}
			for _, r := range readAudit(t, audit) {
				by[r.Outcome+" "+r.By+" "+r.Server+" "+r.Name] = true
			}
			for _, want := range []string{"refused mode my.server set", "allowed always my.server set"} {
				if !by[want] {
					t.Errorf("%q is not in the audit log: %v", want, by)
				}
			}
		})
	}
}
