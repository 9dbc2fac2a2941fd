package elicit

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
)

// field asks for one field until the answer fits; nil leaves the field out.
func (q *Asker) field(ctx context.Context, f toolargs.Property) (json.RawMessage, error) {
	q.describe(f)
	for {
		answer, err := q.prompt(ctx, "  >")
		if err != nil {
			return nil, err
		}
		value, err := f.ReadAnswer(answer)
		if err == nil {
			return value, nil
		}
		q.say("  %s", q.Out.Yellow(term.Printable(err.Error())))
	}
}

func (q *Asker) describe(f toolargs.Property) {
	label := term.RevealLine(f.Text("title"))
	if label == "" {
		label = term.RevealLine(f.Name)
	}
	q.say("  %s %s", q.Out.Bold(label), q.Out.Dim("("+f.Demands()+")"))
	if about := term.RevealLine(f.Text("description")); about != "" {
		q.say("    %s", about)
	}
	choices, _ := f.Choices()
	for i, c := range choices {
		name := term.RevealLine(c.Text())
		if c.Title != "" && c.Title != c.Text() {
			name = term.RevealLine(c.Title) + " " + q.Out.Dim(name)
		}
		q.say("    %d) %s", i+1, name)
	}
}
