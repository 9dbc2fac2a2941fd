package config

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
)

// Position is a position in a file. Line and Column count from 1, Column in characters. A Line of 0
// means the whole file.
type Position struct {
	Path         string
	Line, Column int
}

// String returns path:line:column, which editors and terminals turn into a link.
func (p Position) String() string {
	if p.Line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
}

// Severity is the severity of a [Problem].
type Severity uint8

const (
	// Warning means that a value is probably a mistake, but the entry is usable.
	Warning Severity = iota
	// Error means that the server, or the file if Server is empty, cannot be used.
	Error
)

func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Problem is a problem of a file, or of one server in it.
type Problem struct {
	Severity
	Position
	// Server is the name of the affected server, or "" for the file.
	Server string
	// Message describes the problem and names the field. It holds no value of a variable.
	Message string
	// Hint tells how to fix the problem. It may be empty.
	Hint string
	// Variable is the variable without a value, if that is the problem: an environment variable, or
	// "input:" and an id.
	Variable string
}

// Text is String without the severity.
func (p Problem) Text() string { return p.format("") }

// String returns one line: path:line:column: severity: server "name": message: hint.
func (p Problem) String() string { return p.format(p.Severity.String()) }

func (p Problem) format(severity string) string {
	parts := make([]string, 0, 5)
	if at := p.Position.String(); at != "" {
		parts = append(parts, at)
	}
	if severity != "" {
		parts = append(parts, severity)
	}
	if p.Server != "" {
		parts = append(parts, fmt.Sprintf("server %q", p.Server))
	}
	parts = append(parts, p.Message)
	if p.Hint != "" {
		parts = append(parts, p.Hint)
	}
	return strings.Join(parts, ": ")
}

// Error returns String, so that a Problem is an error.
func (p Problem) Error() string { return p.String() }

func hasErrors(problems []Problem) bool {
	for _, p := range problems {
		if p.Severity == Error {
			return true
		}
	}
	return false
}

// suggestName asks whether the most similar known name was meant. It returns "" if none is similar.
func suggestName(name string, known []string) string {
	if k := nearestName(name, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return ""
}

// suggestOrList is suggestName, or lists all known names.
func suggestOrList(name string, known []string) string {
	if s := suggestName(name, known); s != "" {
		return s
	}
	return "write one of " + strings.Join(known, ", ")
}

func nearestName(name string, known []string) string {
	if len(name) > 64 || !near.Guessable(name) { // no known name is that long, and the comparison takes time
		return ""
	}
	best, least := "", max(len(name)/3, 1)+1
	for _, k := range known {
		if len(name)-len(k) > least || len(k)-len(name) > least {
			continue
		}
		if d := near.Distance(strings.ToLower(name), strings.ToLower(k)); d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
}
