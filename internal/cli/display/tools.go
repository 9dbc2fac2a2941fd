package display

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// WriteTool writes the name, effects, arguments and description of a tool. gap puts an empty line
// before it on a terminal.
func WriteTool(f *factory.Factory, t *mcp.Tool, gap bool) {
	out := f.Stdout
	if gap && out.IsTerminal() {
		fmt.Fprintln(out)
	}
	WriteHeading(f, term.Line(t.Name), Effects(t))
	const indent = "  "
	for _, l := range term.Wrap(toolargs.Signature(toolargs.NewSpec(t.InputSchema)), out.Columns()-len(indent)) {
		fmt.Fprintf(out, "%s%s\n", indent, out.Cyan(l))
	}
	if about := term.FirstLine(t.Description); about != "" {
		fmt.Fprintf(out, "%s%s\n", indent, FitLine(f, about, len(indent)))
	}
}

// WriteHeading writes a line with name at the left and words at the right.
func WriteHeading(f *factory.Factory, name, words string) {
	out := f.Stdout
	if words == "" {
		fmt.Fprintln(out, out.Bold(name))
		return
	}
	gap := max(out.Columns()-term.TextWidth(name)-term.TextWidth(words), 2)
	fmt.Fprintf(out, "%s%s%s\n", out.Bold(name), strings.Repeat(" ", gap), out.Yellow(words))
}

// FitLine shortens text to the terminal's width minus used columns. It returns text unchanged if
// stdout is not a terminal.
func FitLine(f *factory.Factory, text string, used int) string {
	if !f.Stdout.IsTerminal() {
		return text
	}
	return term.Shorten(text, f.Stdout.Columns()-used)
}

// Effects formats the annotations of a tool, such as "destructive, open world". It returns ""
// for a tool without annotations.
func Effects(t *mcp.Tool) string {
	if t.Annotations == nil {
		return ""
	}
	var words []string
	add := func(hint *bool, yes, no string) {
		switch {
		case hint == nil:
		case *hint && yes != "":
			words = append(words, yes)
		case !*hint && no != "":
			words = append(words, no)
		}
	}
	readOnly := t.Annotations.ReadOnlyHint
	add(readOnly, "read-only", "")
	if readOnly == nil || !*readOnly { // the next two apply only to tools that change something
		add(t.Annotations.DestructiveHint, "destructive", "additive")
		add(t.Annotations.IdempotentHint, "idempotent", "")
	}
	add(t.Annotations.OpenWorldHint, "open world", "")
	return strings.Join(words, ", ")
}

// WriteArguments writes the name, kind, default and description of each property of a schema.
func WriteArguments(f *factory.Factory, s toolargs.Spec) {
	for _, p := range s.Properties() {
		about := p.Kind()
		if p.Required {
			about += ", required"
		}
		if fallback := p.Fallback(); fallback != "" {
			about += ", default " + fallback
		}
		fmt.Fprintf(f.Stdout, "\n  %s  %s\n", f.Stdout.Cyan(term.Line(p.Name)), f.Stdout.Dim(about))
		const indent = "    "
		for _, l := range term.Wrap(strings.Fields(term.Printable(p.Text("description"))), f.Stdout.Columns()-len(indent)) {
			fmt.Fprintf(f.Stdout, "%s%s\n", indent, l)
		}
	}
}
