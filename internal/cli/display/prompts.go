package display

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

func WritePrompt(a *factory.Factory, p mcp.Prompt) {
	WriteHeading(a, term.Line(p.Name), "")
	var words []string
	for _, argument := range p.Arguments {
		word := term.Line(argument.Name) + "="
		if !argument.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	const indent = "  "
	for _, l := range term.Wrap(words, a.Stdout.Columns()-len(indent)) {
		fmt.Fprintf(a.Stdout, "%s%s\n", indent, a.Stdout.Cyan(l))
	}
	if about := term.FirstLine(p.Description); about != "" {
		fmt.Fprintf(a.Stdout, "%s%s\n", indent, FitLine(a, about, len(indent)))
	}
}
