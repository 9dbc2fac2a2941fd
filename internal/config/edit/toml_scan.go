package edit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

type statementKind int

const (
	assignment  statementKind = iota // key = value
	tableHeader                      // [table]
	arrayHeader                      // [[array]]
)

// statement is an assignment or a table header. It may span several lines.
type statement struct {
	kind       statementKind
	keys       []string
	start, end int   // without surrounding blanks and comments
	value      *node // for assignments only
}

// tomlScan finds the statements of a text. The TOML library has already accepted the text.
type tomlScan struct {
	document
	pos   int
	depth int
	err   error
}

// scanTOML splits a text into statements.
func scanTOML(text []byte) ([]statement, error) {
	s := &tomlScan{document: newDocument(text, hashComment)}
	var list []statement
	for s.pos = s.skipSpace(0); s.pos < len(text) && s.err == nil; s.pos = s.skipSpace(s.pos) {
		list = append(list, s.scanStatement())
	}
	return list, s.err
}

// setError records that the current line is not understood. The first error stays.
func (s *tomlScan) setError() {
	if s.err == nil {
		s.err = fmt.Errorf("line %d is not understood: %w", bytes.Count(s.text[:min(s.pos, len(s.text))], []byte("\n"))+1, ErrUnsafe)
	}
}

func (s *tomlScan) isAt(set string) bool {
	return s.pos < len(s.text) && strings.IndexByte(set, s.text[s.pos]) >= 0
}

// passByte skips c and the blanks around it.
func (s *tomlScan) passByte(c string) {
	s.pos = s.skipBlanks(s.pos)
	if !s.isAt(c) {
		s.setError()
		return
	}
	s.pos = s.skipBlanks(s.pos + 1)
}

func (s *tomlScan) scanStatement() statement {
	st := statement{start: s.pos}
	for s.isAt("[") && st.kind < arrayHeader {
		st.kind++
		s.pos++
	}
	s.pos = s.skipBlanks(s.pos)
	st.keys = s.scanKeys()
	if st.kind == assignment {
		s.passByte("=")
		st.value = s.scanValue()
		st.end = st.value.end
		return st
	}
	s.pos = s.skipBlanks(s.pos)
	for range st.kind {
		if !s.isAt("]") {
			s.setError()
			return st
		}
		s.pos++
	}
	st.end = s.pos
	return st
}

// scanKeys reads a dotted key.
func (s *tomlScan) scanKeys() []string {
	var keys []string
	for s.err == nil {
		start := s.pos
		if s.isAt(`"'`) {
			s.skipString()
		} else {
			for s.pos < len(s.text) && bareKey(s.text[s.pos]) {
				s.pos++
			}
		}
		if s.pos == start {
			s.setError()
			break
		}
		keys = append(keys, s.decodeKey(string(s.text[start:s.pos])))
		end := s.pos
		if s.pos = s.skipBlanks(s.pos); !s.isAt(".") {
			s.pos = end
			break
		}
		s.pos = s.skipBlanks(s.pos + 1)
	}
	return keys
}

// bareKey reports whether c is allowed in a key without quotes.
func bareKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (s *tomlScan) decodeKey(key string) string {
	if key[0] != '"' && key[0] != '\'' {
		return key
	}
	var v struct{ K string }
	if err := toml.Unmarshal([]byte("K = "+key), &v); err != nil {
		s.setError()
	}
	return v.K
}

// skipString skips a string, with one or three quotes.
func (s *tomlScan) skipString() {
	q := s.text[s.pos]
	quotes := string(q)
	if bytes.HasPrefix(s.text[s.pos:], []byte(strings.Repeat(quotes, 3))) {
		quotes = strings.Repeat(quotes, 3)
	}
	for s.pos += len(quotes); s.pos < len(s.text); s.pos++ {
		if s.text[s.pos] == '\\' && q == '"' {
			s.pos++
			continue
		}
		if bytes.HasPrefix(s.text[s.pos:], []byte(quotes)) {
			s.pos += len(quotes)
			for len(quotes) == 3 && s.pos < len(s.text) && s.text[s.pos] == q { // the string's last character may be a quote, or two
				s.pos++
			}
			return
		}
	}
	s.setError()
}

// scanValue reads a value and moves pos behind it.
func (s *tomlScan) scanValue() *node {
	if s.depth++; s.depth > maxDepth {
		s.setError()
	}
	defer func() { s.depth-- }()
	n := &node{start: s.pos}
	switch {
	case s.err != nil:
	case s.isAt(`"'`):
		s.skipString()
	case s.isAt("["):
		n.kind = list
		s.scanBrackets(n, "]")
	case s.isAt("{"):
		n.kind = object
		s.scanBrackets(n, "}")
	default:
		for s.pos < len(s.text) && !s.isAt(",]}#\r\n") {
			s.pos++
		}
		s.pos = trimmedEnd(s.text, n.start, s.pos)
		if s.pos == n.start {
			s.setError()
		}
	}
	n.end = s.pos
	return n
}

// scanBrackets reads the items of an array or an inline table.
func (s *tomlScan) scanBrackets(n *node, closing string) {
	s.pos++
	n.open = s.pos
	for s.err == nil {
		s.pos = s.skipSpace(s.pos)
		if s.isAt(closing) {
			n.close = s.pos
			s.pos++
			return
		}
		n.items = append(n.items, s.scanItem(n))
		s.pos = s.skipSpace(s.pos)
		if s.isAt(",") {
			s.pos++
		} else if !s.isAt(closing) {
			s.setError()
		}
	}
}

// scanItem reads an array element, or a member of an inline table.
func (s *tomlScan) scanItem(n *node) item {
	it := item{start: s.pos, after: s.pos}
	if n.kind == object {
		keys := s.scanKeys()
		s.passByte("=")
		it.after = s.pos
		if s.err == nil {
			it.key = keys[0]
			if len(keys) > 1 { // {a.b = 1}: the text has no value for a as a whole that could be edited
				s.scanValue()
				it.end = s.pos
				it.value = &node{start: it.start, end: it.end}
				return it
			}
		}
	}
	it.value = s.scanValue()
	it.end = s.pos
	return it
}
