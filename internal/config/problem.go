package config

import (
	"fmt"
	"strings"
)

// Position is a place in a file. Line and Column count from 1, Column in characters; 0 means the file as a whole.
type Position struct {
	Path         string
	Line, Column int
}

// String is the form that editors and terminals make a link of: path:line:column.
func (p Position) String() string {
	if p.Line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
}

// Severity says what a [Problem] prevents.
type Severity uint8

const (
	// Warning: something is not as its writer meant it, but what is about is usable.
	Warning Severity = iota
	// Error: the server, or the file where Server is empty, cannot be used as it stands.
	Error
)

func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Problem is something wrong with a file, or with one server in it.
type Problem struct {
	Severity
	Position
	// Server is the name of the server that it is about; empty: the file.
	Server string
	// Message says what is wrong and names the field. It holds no value of a variable.
	Message string
	// Hint says how to put it right; it may be empty.
	Hint string
	// Variable names what has no value, where that is the problem: an environment variable, or "input:" and an id.
	Variable string
}

// Text is String without the severity, for those who say that in words of their own.
func (p Problem) Text() string { return p.text("") }

// String puts the problem into one line: path:line:column: severity: server "name": message: hint.
func (p Problem) String() string { return p.text(p.Severity.String()) }

func (p Problem) text(severity string) string {
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

// Error makes a Problem an error.
func (p Problem) Error() string { return p.String() }

func fatal(problems []Problem) bool {
	for _, p := range problems {
		if p.Severity == Error {
			return true
		}
	}
	return false
}
