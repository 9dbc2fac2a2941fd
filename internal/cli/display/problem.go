package display

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
)

// problemLine is a problem as a program reads it.
type problemLine struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line,omitzero"`
	Column   int    `json:"column,omitzero"`
	Server   string `json:"server,omitzero"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitzero"`
}

func WriteProblem(f *factory.Factory, p config.Problem) {
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, problemLine{p.Severity.String(), p.Path, p.Line, p.Column, p.Server, p.Message, p.Hint})
		return
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Clean(p.String()))
}
