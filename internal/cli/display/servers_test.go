package display

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
)

func TestTable(t *testing.T) {
	f := &factory.Factory{Stdout: term.NewScreen(&bytes.Buffer{}, nil), Stderr: term.NewScreen(&bytes.Buffer{}, nil)}
	now := time.Now()
	lines := ServerTable(f, []control.Server{
		{Name: "ok", Status: hub.Ready, Since: now.Add(-90 * time.Second), Revision: "2025-06-18", Era: "legacy", Tools: 7, Title: "thing 1.0", Source: "user",
			Quarantined: []control.Quarantined{{Kind: "tool", Name: "odd", Reason: "its inputSchema is not an object"}}},
		{Name: "broken\x1b[31m\nname", Status: hub.Failed, Since: now, Origin: "npx -y x", Source: "user", Problem: "it is not there\nmore", Advice: "Install it."},
		{Name: "théirs", Status: hub.NeedsTrust, Source: "project", Since: now, Cause: "it came with the project"},
		{Name: "off", Status: hub.Disabled, Since: now.Add(-49 * time.Hour), Cause: "it is switched off", Note: "to be known"},
	}, 80)
	want := `SERVER       STATE        ERA                TOOLS  SINCE  SOURCE   DETAIL
ok           ready        legacy 2025-06-18  7      1m     user     thing 1.0
    the tool odd is left out: its inputSchema is not an object
broken name  failed                          -      0s     user     npx -y x
    it is not there
    → Install it.
théirs       needs trust                     -      0s     project
    it came with the project
off          disabled                        -      2d
    it is switched off
    to be known`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
