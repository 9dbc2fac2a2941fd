// Package factory holds what every command gets: the streams, the flags of all commands, and the
// ways to the configuration, the state and the running daemon. Output goes through it, so that
// --json and a closed pipe mean the same everywhere:
//
//	if f.JSON {
//		return f.WriteValue(result)
//	}
//	fmt.Fprintln(f.Stdout, f.Stdout.Bold(name))
package factory

import (
	"fmt"
	"io"

	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Factory holds the state of one run of dowel. Its methods that write are safe for concurrent use.
type Factory struct {
	Stdin          io.Reader
	Stdout, Stderr *term.Screen

	JSON      bool
	Verbosity int // how often -v was given

	Parsed bool // the command line was read; earlier errors are usage errors
}

// IsVerbose reports whether -v was given.
func (f *Factory) IsVerbose() bool { return f.Verbosity > 0 }

// Notice writes text to stderr if that is a terminal.
func (f *Factory) Notice(text string) {
	if f.Stderr.IsTerminal() {
		fmt.Fprintf(f.Stderr, "\n%s\n", f.Stderr.Dim(f.Stderr.Wrapped(text)))
	}
}

// Warn writes a warning without secrets to stderr: as text, or as a line of JSON.
func (f *Factory) Warn(format string, args ...any) {
	f.writeRemark("warning", f.Stderr.Yellow("dowel: warning:"), fmt.Sprintf(format, args...))
}

// Remark writes a note without secrets to stderr, as [Factory.Warn] does: nothing is wrong.
func (f *Factory) Remark(format string, args ...any) {
	f.writeRemark("note", "dowel: note:", fmt.Sprintf(format, args...))
}

func (f *Factory) writeRemark(kind, prefix, text string) {
	text = secretmask.Text(text)
	if f.JSON {
		WriteJSONLine(f.Stderr, map[string]any{kind: text})
		return
	}
	fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(prefix+" "+f.Stderr.Clean(text)))
}
