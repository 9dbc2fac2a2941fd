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

func WriteProblem(a *factory.Factory, p config.Problem) {
	if a.Json {
		factory.WriteJSONLine(a.Stdout, problemLine{p.Severity.String(), p.Path, p.Line, p.Column, p.Server, p.Message, p.Hint})
		return
	}
	fmt.Fprintln(a.Stdout, a.Stdout.Clean(p.String()))
}
