package factory

import (
	"fmt"
	"io"

	"github.com/dowel-mcp/dowel/internal/term"
)

// Factory is one run of dowel.
type Factory struct {
	Stdin          io.Reader
	Stdout, Stderr *term.Screen

	Json    bool
	Verbose bool

	Parsed bool // the command line was understood
}

// Notice says something on a terminal; programs have no use for it.
func (a *Factory) Notice(text string) {
	if a.Stderr.IsTerminal() {
		fmt.Fprintf(a.Stderr, "\n%s\n", a.Stderr.Dim(text))
	}
}

// Warn says what the user should know although the command goes on.
func (a *Factory) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if a.Json {
		WriteJSONLine(a.Stderr, map[string]any{"warning": text})
		return
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.Stderr.Yellow("dowel: warning:"), a.Stderr.Clean(text))
}
