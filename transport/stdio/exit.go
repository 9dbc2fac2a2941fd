package stdio

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// ExitError says how a child ended. An exit with status 0 is one too: a server that leaves while it is needed is as
// gone as one that crashed.
type ExitError struct {
	// Command is the program as the Command named it; arguments are left out because they carry secrets.
	Command string
	// State is the exit code or signal; nil where it is unknown: the process could not be killed, or another part of
	// this program waits for every child and took the status.
	State *os.ProcessState
	// Stderr holds the last lines that the process wrote to stderr: at most 10 lines and 2 KiB.
	Stderr string
	// Closed says that the exit followed a call of Close.
	Closed bool
}

// ExitCode is the exit status, or -1 where a signal ended the process or State is nil.
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

var escapeSequence = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`)
})

// printable drops what a terminal would obey, since the text of an error ends up on one.
func printable(s string) string {
	s = escapeSequence().ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
