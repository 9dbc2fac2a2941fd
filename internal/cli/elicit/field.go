package elicit

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
)

// askField asks for one field until the answer is valid. A nil value means that the field is left
// out.
func (a *Asker) askField(ctx context.Context, f toolargs.Property) (json.RawMessage, error) {
	a.describeField(f)
	for {
		answer, err := a.readReply(ctx, "  >")
		if err != nil {
			return nil, err
		}
		value, err := f.ReadAnswer(answer)
		if err == nil {
			return value, nil
		}
		a.printLine("  %s", a.Out.Yellow(term.Printable(err.Error())))
	}
}

// describeField writes the title, description and choices of a field.
func (a *Asker) describeField(f toolargs.Property) {
	label := term.RevealLine(f.Text("title"))
	if label == "" {
		label = term.RevealLine(f.Name)
	}
	a.printLine("  %s %s", a.Out.Bold(label), a.Out.Dim("("+f.Demands()+")"))
	if about := term.RevealLine(f.Text("description")); about != "" {
		a.printLine("    %s", about)
	}
	choices, _ := f.Choices()
	for i, c := range choices {
		name := term.RevealLine(c.Text())
		if c.Title != "" && c.Title != c.Text() {
			name = term.RevealLine(c.Title) + " " + a.Out.Dim(name)
		}
		a.printLine("    %d) %s", i+1, name)
	}
}
