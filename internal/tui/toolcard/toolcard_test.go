package toolcard

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

func TestCard(t *testing.T) {
	look := transcript.Look{Width: 50, Theme: theme.New(true)}
	whole := look
	whole.Expanded = true
	for name, tt := range map[string]struct {
		card Card
		look transcript.Look
		want string
	}{
		"running":  {Card{Tool: "a.b", Brief: "x=1", Elapsed: 3 * time.Second, Progress: "1/2"}, look, "● ▸ a.b x=1 · 3s 1/2"},
		"new":      {Card{Tool: "a.b"}, look, "● ▸ a.b · running"},
		"done":     {Card{Tool: "a.b", Brief: strings.Repeat("long ", 20), State: Succeeded, Facts: "1 ms, 3 B", Result: "one"}, look, "✓ ▸ a.b long long long long long long… · 1 ms, 3 B"},
		"expanded": {Card{Tool: "a.b", State: Succeeded, Facts: "1 ms", Arguments: []string{"x: 1", "y: 2"}, Result: "one\ntwo\n"}, whole, "✓ ▾ a.b · 1 ms\n  x: 1\n  y: 2\n  │ one\n  │ two"},
		"failed":   {Card{Tool: "a.b", State: Failed, Facts: "failed", Result: "1\n2\n3\n4"}, look, "✗ ▸ a.b · failed\n  │ 1\n  │ 2\n  │ 3\n  … more; the model has the whole result"},
		"changed":  {Card{Tool: "f.edit", State: Succeeded, Facts: "1 ms", Result: "changed a\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n+Y\n@@ -9 +9 @@\n+z\n\n+no part of it"}, look, "✓ ▸ f.edit · 1 ms\n  │  x\n  │ -y\n  │ +Y\n  │ …\n  │ +z"},
		"refused":  {Card{Tool: "a.b", State: Refused, Facts: "not run: no"}, look, "– ▸ a.b · not run: no"},
	} {
		if got := ansi.Strip(strings.Join(tt.card.Lines(tt.look), "\n")); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// A result of 5 MiB has as many lines as a screen can use.
func TestLargeResult(t *testing.T) {
	look := transcript.Look{Width: 80, Expanded: true, Theme: theme.New(true)}
	for name, result := range map[string]string{"lines": strings.Repeat("a line\n", 800_000), "one line": strings.Repeat("é", 5<<19), "empty lines": strings.Repeat("\n", 5<<20)} {
		card := Card{Tool: "a.b", State: Succeeded, Result: result, Arguments: make([]string, 10_000)}
		if n := len(card.Lines(look)); n > maxArgumentLines+maxResultLines+5 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}
