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

// JSON that is a table is shown as one, if the terminal has room. Other JSON stays as it is.
func TestTables(t *testing.T) {
	look := transcript.Look{Width: 40, Expanded: true, Theme: theme.New(true)}
	cities := "city  rain\n  │ Rome  3\n  │ Oslo  9"
	for result, want := range map[string]string{
		`[{"city": "Rome", "rain": 3}, {"rain": 9, "city": "Oslo"}]`:                                               cities,
		"[\n\t{\"city\": \"Rome\", \"rain\": 3},\n\t{\"city\": \"Oslo\", \"rain\": 9}\n]\n":                        cities,
		`{"total":2,"found":[{"city":"Rome","rain":3},{"city":"Oslo","rain":9}],"cut":false}`:                      cities + "\n  │ total: 2, cut: false",
		`{"columns":["city","rain"],"rows":[["Rome",3],["Oslo",9]]}`:                                               cities,
		`{"columns":[{"name":"city","type":"text"},{"name":"rain","type":"int4"}],"rows":[["Rome",3],["Oslo",9]]}`: cities,
		"two cities\n" + `[{"city":"Rome","rain":3},{"city":"Oslo","rain":9}]`:                                     "two cities\n  │ " + cities,
		`[{"a":null,"b":true},{"c":"x\u001b[31my\nz"}]`:                                                            "a  b     c\n  │    true\n  │          xy z",
		`[{"text":"` + strings.Repeat("long ", 30) + `","n":1}]`:                                                   "text                               n\n  │ long long long long long long lo…  1",
		`[]`: "[]", `[1,2]`: "[1,2]", `{"a":1}`: `{"a":1}`, `[{"a":[1]}]`: `[{"a":[1]}]`, `[{}]`: "[{}]", `[{"a":1}`: `[{"a":1}`,
		`{"columns":["a"],"rows":[[1,2]]}`: `{"columns":["a"],"rows":[[1,2]]}`, `{"a":[{"b":1}],"c":[{"d":1}]}`: `{"a":[{"b":1}],"c":[{"d":1}]}`,
	} {
		card := Card{Tool: "a.b", State: Succeeded, Facts: "1 ms", Result: result}
		if got := ansi.Strip(strings.Join(card.Lines(look), "\n")); got != "✓ ▾ a.b · 1 ms\n  │ "+want {
			t.Errorf("%s is shown as\n%s", result, got)
		}
	}
	look.Width = 12
	card := Card{Tool: "a.b", State: Succeeded, Result: `[{"first":"long words","second":"long words"}]`}
	if got := ansi.Strip(strings.Join(card.Lines(look), "")); !strings.Contains(got, "{") {
		t.Errorf("a table is cut on a narrow terminal: %s", got)
	}
}
