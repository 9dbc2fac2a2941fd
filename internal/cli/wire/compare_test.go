package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
)

// A comparison shows what differs, and text of servers does not reach the terminal raw.
func TestComparison(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	f := &factory.Factory{Stdout: term.NewScreen(&b, func() {}), Stderr: term.NewScreen(&b, func() {})}
	writeComparison(f, control.Comparison{
		Facts:     []control.ComparedFact{{Name: "Name", A: "echo", B: "a\x1b[31m", Differ: true}, {Name: "Status", A: "ok", B: "ok"}},
		Arguments: []string{"  {", "- \"a\": 1", "+ \"a\": \"\x1b]0;title\x07\"", "  }"},
	})
	got := b.String()
	if !strings.Contains(got, "≠ Name") || !strings.Contains(got, "  Status") || !strings.Contains(got, "- \"a\": 1") || strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("the comparison is %q", got)
	}
	if err := runCompare(t.Context(), f, []uint{1}, nil); err == nil {
		t.Error("one operation is compared")
	}
}
