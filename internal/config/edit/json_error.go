package edit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// SyntaxError describes a syntax error in a JSON text for the user who edits the file.
type SyntaxError struct {
	// Line and Column count from 1, Column in bytes. Both are 0 if the position is unknown.
	Line, Column int
	Message      string
	// Truncated means that the text ends too early.
	Truncated bool
	// Missing means that a comma or a bracket is missing after the value before the position.
	Missing bool
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 || e.Truncated {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

var (
	jsonPlace   = lazyregexp.New(`^hujson: line (\d+), column (\d+): `)
	jsonInvalid = lazyregexp.New(`^invalid character (.+) (at start of value|at start of object name|after object name|after top-level value)`)
)

// ExplainJSON converts an error of the hujson parser to a [*SyntaxError]. It returns nil for nil.
func ExplainJSON(err error) error {
	if err == nil {
		return nil
	}
	e, text := &SyntaxError{}, err.Error()
	if m := jsonPlace().FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Column, _ = strconv.Atoi(m[2])
		text = text[len(m[0]):]
	}
	e.setMessage(text)
	return e
}

func (e *SyntaxError) setMessage(text string) {
	e.Missing = strings.Contains(text, "expecting ',' or")
	e.Truncated = strings.Contains(text, "unexpected EOF")
	literal, isLiteral := strings.CutPrefix(text, "invalid literal: ")
	switch {
	case e.Missing:
		e.Message = "a comma is missing here, or a bracket"
	case strings.HasPrefix(text, "parsing comment"):
		e.Message = "the file ends too early, within a comment: close it with */"
	case e.Truncated:
		e.Message = "the file ends too early, a quote or a bracket is not closed"
	case strings.Contains(text, `character '\''`):
		e.Message = `JSON has no single quotes, write "…"`
	case strings.HasPrefix(literal, `"`):
		e.Message = `this string is not closed in its line, or a \ in it is not part of an escape (write \\ for one \)`
	case isLiteral:
		e.Message = fmt.Sprintf("%s is not JSON: write keys and text in double quotes", literal)
	default:
		e.Message = explainMisplaced(text)
	}
}

// explainMisplaced explains which token belongs in the place of the one found.
func explainMisplaced(text string) string {
	m := jsonInvalid().FindStringSubmatch(text)
	if m == nil {
		return "this is not JSON"
	}
	switch m[2] {
	case "at start of object name":
		return fmt.Sprintf("a key in double quotes belongs here, not %s", m[1])
	case "after object name":
		return fmt.Sprintf("a colon belongs behind the key, not %s", m[1])
	case "after top-level value":
		return fmt.Sprintf("the file continues after its last bracket, with %s", m[1])
	}
	return fmt.Sprintf("a value belongs here, not %s", m[1])
}
