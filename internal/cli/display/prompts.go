package display

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// WritePrompt writes the name, arguments and description of a prompt. Optional arguments are in
// brackets.
func WritePrompt(f *factory.Factory, p mcp.Prompt) {
	WriteHeading(f, term.Line(p.Name), "")
	var words []string
	for _, argument := range p.Arguments {
		word := term.Line(argument.Name) + "="
		if !argument.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	const indent = "  "
	for _, l := range term.Wrap(words, f.Stdout.Columns()-len(indent)) {
		fmt.Fprintf(f.Stdout, "%s%s\n", indent, f.Stdout.Cyan(l))
	}
	if about := term.FirstLine(p.Description); about != "" {
		fmt.Fprintf(f.Stdout, "%s%s\n", indent, FitLine(f, about, len(indent)))
	}
}
