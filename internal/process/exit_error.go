package process

import (
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/stacktrace"
)

// ExitError is the exit of a child. It is an error even if the exit status is 0, because the
// process is gone.
type ExitError struct {
	// Command is the Path of the Command. The arguments are omitted because they may contain
	// secrets.
	Command string
	// State holds the exit status or signal. It is nil if the status is unknown, because the
	// process could not be killed or other code of this program has reaped it.
	State *os.ProcessState
	// Stderr holds the last lines of stderr, at most 10 lines and 2 KiB. The frames of stack traces
	// are left out, so that the error before them is kept.
	Stderr string
	// Closed reports whether the exit followed a call of Close.
	Closed bool

	crash string // the uncaught error that stderr tells; "" if it tells none
}

// CrashMessage returns the uncaught error in the stderr of an exited process on one line, or "".
func CrashMessage(e *ExitError) string {
	if e.crash != "" {
		return e.crash
	}
	return stacktrace.Message(e.Stderr)
}

// ExitCode returns the exit status, or -1 if a signal ended the process or State is nil.
func (e *ExitError) ExitCode() int {
	if e.State == nil {
		return -1
	}
	return e.State.ExitCode()
}

func (e *ExitError) Error() string {
	var b strings.Builder
	if e.State == nil {
		fmt.Fprintf(&b, "%s ended: its exit status is unknown", e.Command)
	} else {
		fmt.Fprintf(&b, "%s ended: %s", e.Command, e.State)
	}
	if e.Stderr != "" {
		b.WriteString("; its last words on stderr:\n\t" + strings.ReplaceAll(e.Stderr, "\n", "\n\t"))
	}
	return b.String()
}

var escapeSequence = lazyregexp.New(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`)

// StripControls removes control characters, except line breaks and tabs, and escape sequences: the
// text of an error is often printed on a terminal.
func StripControls(s string) string {
	s = escapeSequence().ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
