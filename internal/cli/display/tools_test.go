package display

import (
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestEffects(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		hints *mcp.ToolAnnotations
		want  string
	}{
		{nil, ""},
		{&mcp.ToolAnnotations{}, ""},
		{&mcp.ToolAnnotations{ReadOnlyHint: &yes, DestructiveHint: &yes, IdempotentHint: &yes, OpenWorldHint: &no}, "read-only"},
		{&mcp.ToolAnnotations{ReadOnlyHint: &no, DestructiveHint: &yes, OpenWorldHint: &yes}, "destructive, open world"},
		{&mcp.ToolAnnotations{DestructiveHint: &no, IdempotentHint: &yes}, "additive, idempotent"},
	} {
		if got := Effects(&mcp.Tool{Annotations: test.hints}); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.hints, got, test.want)
		}
	}
}
