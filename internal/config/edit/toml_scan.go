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

// statement is a line, or several, of a file of TOML.
type statement struct {
	kind       statementKind
	keys       []string
	start, end int   // without what else is on its lines
	value      *node // of an assignment
}

// tomlScan finds the statements of a text that a library has read.
type tomlScan struct {
	document
	pos   int
	depth int
	err   error
}

func scanTOML(text []byte) ([]statement, error) {
	s := &tomlScan{document: newDocument(text, hashComment)}
	var list []statement
	for s.pos = s.space(0); s.pos < len(text) && s.err == nil; s.pos = s.space(s.pos) {
		list = append(list, s.statement())
	}
	return list, s.err
}

func (s *tomlScan) fail() {
	if s.err == nil {
		s.err = fmt.Errorf("line %d is not understood: %w", bytes.Count(s.text[:min(s.pos, len(s.text))], []byte("\n"))+1, ErrUnsafe)
	}
}

func (s *tomlScan) at(set string) bool {
	return s.pos < len(s.text) && strings.IndexByte(set, s.text[s.pos]) >= 0
}

// pass passes c, and what white space is around it on the line.
func (s *tomlScan) pass(c string) {
	s.pos = s.blanks(s.pos)
	if !s.at(c) {
		s.fail()
		return
	}
	s.pos = s.blanks(s.pos + 1)
}

func (s *tomlScan) statement() statement {
	st := statement{start: s.pos}
	for s.at("[") && st.kind < arrayHeader {
		st.kind++
		s.pos++
	}
	s.pos = s.blanks(s.pos)
	st.keys = s.keys()
	if st.kind == assignment {
		s.pass("=")
		st.value = s.value()
		st.end = st.value.end
		return st
	}
	s.pos = s.blanks(s.pos)
	for range st.kind {
		if !s.at("]") {
			s.fail()
			return st
		}
		s.pos++
	}
	st.end = s.pos
	return st
}

// keys reads a key with its dots.
func (s *tomlScan) keys() []string {
	var keys []string
	for s.err == nil {
		start := s.pos
		if s.at(`"'`) {
			s.quoted()
		} else {
			for s.pos < len(s.text) && bareKey(s.text[s.pos]) {
				s.pos++
			}
		}
		if s.pos == start {
			s.fail()
			break
		}
		keys = append(keys, s.decode(string(s.text[start:s.pos])))
		end := s.pos
		if s.pos = s.blanks(s.pos); !s.at(".") {
			s.pos = end
			break
		}
		s.pos = s.blanks(s.pos + 1)
	}
	return keys
}

func bareKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (s *tomlScan) decode(key string) string {
	if key[0] != '"' && key[0] != '\'' {
		return key
	}
	var v struct{ K string }
	if err := toml.Unmarshal([]byte("K = "+key), &v); err != nil {
		s.fail()
	}
	return v.K
}

// quoted passes a string of one line or, with three quotes, of several.
func (s *tomlScan) quoted() {
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
	s.fail()
}

func (s *tomlScan) value() *node {
	if s.depth++; s.depth > maxDepth {
		s.fail()
	}
	defer func() { s.depth-- }()
	n := &node{start: s.pos}
	switch {
	case s.err != nil:
	case s.at(`"'`):
		s.quoted()
	case s.at("["):
		n.kind = list
		s.brackets(n, "]")
	case s.at("{"):
		n.kind = object
		s.brackets(n, "}")
	default:
		for s.pos < len(s.text) && !s.at(",]}#\r\n") {
			s.pos++
		}
		s.pos = trimmed(s.text, n.start, s.pos)
		if s.pos == n.start {
			s.fail()
		}
	}
	n.end = s.pos
	return n
}

func (s *tomlScan) brackets(n *node, closing string) {
	s.pos++
	n.open = s.pos
	for s.err == nil {
		s.pos = s.space(s.pos)
		if s.at(closing) {
			n.close = s.pos
			s.pos++
			return
		}
		n.items = append(n.items, s.item(n))
		s.pos = s.space(s.pos)
		if s.at(",") {
			s.pos++
		} else if !s.at(closing) {
			s.fail()
		}
	}
}

func (s *tomlScan) item(n *node) item {
	it := item{start: s.pos, after: s.pos}
	if n.kind == object {
		keys := s.keys()
		s.pass("=")
		it.after = s.pos
		if s.err == nil {
			it.key = keys[0]
			if len(keys) > 1 { // {a.b = 1}: a is there, but not as one value that can be edited
				s.value()
				it.end = s.pos
				it.value = &node{start: it.start, end: it.end}
				return it
			}
		}
	}
	it.value = s.value()
	it.end = s.pos
	return it
}
