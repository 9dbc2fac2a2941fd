package edit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// SyntaxError says where a text is no JSON, and what is wrong there in words for those who edit it.
type SyntaxError struct {
	// Line and Column count from 1, Column in bytes; 0: the end of the text.
	Line, Column int
	Message      string
	// Truncated: the text ends too early.
	Truncated bool
	// Missing: something belongs behind the value that is before the place.
	Missing bool
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 || e.Truncated {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

var (
	jsonPlace   = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)
	jsonInvalid = regexp.MustCompile(`^invalid character (.+) (at start of value|at start of object name|after object name|after top-level value)`)
)

// ExplainJSON puts what the parser of JSON has found into words; nil for no error.
func ExplainJSON(err error) error {
	if err == nil {
		return nil
	}
	e, text := &SyntaxError{}, err.Error()
	if m := jsonPlace.FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Column, _ = strconv.Atoi(m[2])
		text = text[len(m[0]):]
	}
	e.explain(text)
	return e
}

func (e *SyntaxError) explain(text string) {
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
		e.Message = `this string is not closed in its line, or a \ in it is followed by what is no escape (write \\ for one \)`
	case isLiteral:
		e.Message = fmt.Sprintf("%s is no JSON: write keys and text in double quotes", literal)
	default:
		e.Message = misplaced(text)
	}
}

// misplaced says what belongs where something else is.
func misplaced(text string) string {
	m := jsonInvalid.FindStringSubmatch(text)
	if m == nil {
		return "this is not JSON"
	}
	switch m[2] {
	case "at start of object name":
		return fmt.Sprintf("a key in double quotes belongs here, not %s", m[1])
	case "after object name":
		return fmt.Sprintf("a colon belongs behind the key, not %s", m[1])
	case "after top-level value":
		return fmt.Sprintf("the file goes on behind its last bracket, with %s", m[1])
	}
	return fmt.Sprintf("a value belongs here, not %s", m[1])
}
