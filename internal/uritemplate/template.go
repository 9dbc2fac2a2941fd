// Package uritemplate implements URI templates (RFC 6570, all four levels) and their reverse: a
// [Template] matches the URIs that it can expand to and returns the variables, as resource
// templates need it.
//
//	t, err := uritemplate.Parse("kv://{key}")
//	uri, err := t.Expand(uritemplate.Values{"key": uritemplate.Text("a b")}) // kv://a%20b
//	vars, ok := t.Match(uri)                                                 // key: a b
//
// Matching takes time proportional to the template's length times the URI's length, and a quarter
// of a byte of memory for each part of the template times each byte of the URI, for any input: it
// looks at no state twice.
package uritemplate

import (
	"fmt"
	"slices"
	"strings"
)

// Limits. A longer template is refused by [Parse], a longer URI never matches.
const (
	MaxTemplate  = 4096  // bytes of a template
	MaxVariables = 64    // variables in a template, repetitions counted
	MaxURI       = 16384 // bytes of a URI to match
)

// Template is a parsed URI template. It is immutable and safe for concurrent use.
type Template struct {
	text     string
	pieces   []piece
	names    []string
	parts    []part
	literals int // bytes of literal text
	spanning int // variables that may span segments
}

// piece is either literal text, encoded as it appears in a URI, or an expression.
type piece struct {
	literal    string
	expression *expression
}

type expression struct {
	operator  operator
	variables []variable
}

type variable struct {
	name    string
	explode bool
	prefix  int // most characters; 0 for all
}

// String returns the text that the template was parsed from.
func (t *Template) String() string { return t.text }

// Names returns the names of the variables in the order of their first use.
func (t *Template) Names() []string { return slices.Clone(t.names) }

// Literal returns the URI of a template without variables. ok is false if the template has
// variables.
func (t *Template) Literal() (string, bool) {
	if len(t.names) > 0 {
		return "", false
	}
	if len(t.pieces) == 0 {
		return "", true
	}
	return t.pieces[0].literal, true
}

// Compare orders templates by how specific they are, the most specific first. If several templates
// match a URI, choose the least. The order is: more literal text first, then fewer variables that
// span segments ({+x}, {#x}, {x*}), then fewer variables, then the text. It returns 0 only for
// templates with the same text.
func Compare(a, b *Template) int {
	for _, difference := range []int{
		b.literals - a.literals,
		a.spanning - b.spanning,
		a.countVariables() - b.countVariables(),
	} {
		if difference != 0 {
			return difference
		}
	}
	return strings.Compare(a.text, b.text)
}

func (t *Template) countVariables() int {
	n := 0
	for _, p := range t.pieces {
		if p.expression != nil {
			n += len(p.expression.variables)
		}
	}
	return n
}

// ParseError describes the fault of a template and its position.
type ParseError struct {
	Template string
	Offset   int // in bytes
	Problem  string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("uritemplate: %s at byte %d of %q", e.Problem, e.Offset, e.Template)
}

// operator is the character after the opening brace; 0 for none.
type operator byte

// operatorRule is a row of RFC 6570's table of operators (appendix A).
type operatorRule struct {
	first     string // before the first defined variable
	separator byte   // before each further one
	named     bool   // whether values follow their variable's name
	ifEmpty   string // follows the name of an empty value
	reserved  bool   // whether reserved characters stay as they are
}

var operatorRules = map[operator]operatorRule{
	0:   {separator: ','},
	'+': {separator: ',', reserved: true},
	'#': {first: "#", separator: ',', reserved: true},
	'.': {first: ".", separator: '.'},
	'/': {first: "/", separator: '/'},
	';': {first: ";", separator: ';', named: true},
	'?': {first: "?", separator: '&', named: true, ifEmpty: "="},
	'&': {first: "&", separator: '&', named: true, ifEmpty: "="},
}
