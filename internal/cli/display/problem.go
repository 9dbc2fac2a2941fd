package display

import (
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
)

// problemLine is the JSON form of a problem.
type problemLine struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line,omitzero"`
	Column   int    `json:"column,omitzero"`
	Server   string `json:"server,omitzero"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitzero"`
}

// WriteProblem writes a problem of the configuration: as text, or as a line of JSON.
func WriteProblem(f *factory.Factory, p config.Problem) {
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, problemLine{p.Severity.String(), p.Path, p.Line, p.Column, p.Server, p.Message, p.Hint})
		return
	}
	f.WriteMessage("%s", f.Stdout.Clean(p.String()))
}
