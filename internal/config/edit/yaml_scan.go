package edit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// yamlScan finds where the values lie in a text that a library has read, or will read: it need not tell every mistake, but must
// not loop or panic. The library's own positions count runes and lines, differently for each kind of token.
type yamlScan struct {
	document
	pos   int
	depth int
	err   error
}

func scanYAML(text []byte) (*node, error) {
	s := &yamlScan{document: newDocument(text, yamlComment)}
	s.pos = s.space(0)
	for s.pos < len(text) && text[s.pos] == '%' { // directives
		s.pos = s.space(lineEnd(text, s.pos))
	}
	from := 0
	if s.marker("---") {
		s.pos += 3
		from = s.pos
	}
	n := s.value(-1, false, true, from)
	if s.err != nil {
		return nil, s.err
	}
	s.pos = s.space(n.end)
	if s.marker("...") {
		s.pos = s.space(s.pos + 3)
	}
	switch {
	case s.pos == len(text):
	case s.marker("---"):
		return nil, fmt.Errorf("it has several documents: %w", ErrUnsafe)
	default:
		s.fail("what is on line %d is not understood", bytes.Count(text[:s.pos], []byte("\n"))+1)
	}
	if n.start == n.end {
		n.start = s.rootStart(from)
		n.end = n.start
	}
	return n, s.err
}

// rootStart returns where a file's first value goes: behind all comments, before a marker of the end.
func (s *yamlScan) rootStart(from int) int {
	pos := s.space(from)
	if pos < len(s.text) {
		return lineStart(s.text, pos)
	}
	return len(s.text)
}

func (s *yamlScan) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format+": %w", append(args, ErrUnsafe)...)
	}
}

// at reports whether there is one of these bytes at pos.
func (s *yamlScan) at(pos int, set string) bool {
	return pos < len(s.text) && strings.IndexByte(set, s.text[pos]) >= 0
}

// gapAt reports whether there is white space at pos, or the end.
func (s *yamlScan) gapAt(pos int) bool { return pos >= len(s.text) || isSpace(s.text[pos]) }

func (s *yamlScan) indicator(c string) bool { return s.at(s.pos, c) && s.gapAt(s.pos+1) }

func (s *yamlScan) marker(m string) bool {
	return s.pos == lineStart(s.text, min(s.pos, len(s.text))) && bytes.HasPrefix(s.text[s.pos:], []byte(m)) && s.gapAt(s.pos+3)
}

// over reports whether the document ends here.
func (s *yamlScan) over() bool {
	return s.err != nil || s.pos >= len(s.text) || s.marker("---") || s.marker("...")
}

func (s *yamlScan) column() int { return s.pos - lineStart(s.text, s.pos) }

// value reads the value behind from, which belongs to something at column parent. dashes is whether a list may begin in the
// same column, fresh whether the value may begin lines of its own where it stands.
func (s *yamlScan) value(parent int, dashes, fresh bool, from int) *node {
	if s.depth++; s.depth > maxDepth {
		s.fail("it is nested deeper than %d levels", maxDepth)
	}
	defer func() { s.depth-- }()
	n := &node{start: from, end: from}
	s.pos = from
	column := -1 // of the first thing on the line
	for s.err == nil {
		at := s.pos
		s.pos = s.space(s.pos)
		if s.hasBreak(at, s.pos) {
			fresh, column = true, -1
		}
		if s.over() {
			return n
		}
		if c := s.column(); s.hasBreak(from, s.pos) && c <= parent && !(dashes && c == parent && s.indicator("-")) {
			return n
		}
		if column < 0 {
			column = s.column()
		}
		if !s.at(s.pos, "&!") {
			break
		}
		for !s.gapAt(s.pos) {
			s.pos++
		}
		n.start, n.end = s.pos, s.pos
	}
	if s.err != nil {
		return n
	}
	n.start = s.pos
	switch {
	case s.indicator("-") && fresh:
		s.items(n, column, list)
	case s.indicator("?"):
		s.fail("it has explicit keys")
	case s.at(s.pos, "|>"):
		n.end = s.blockScalar(parent)
	default:
		s.other(n, parent, column, fresh)
	}
	return n
}

func (s *yamlScan) other(n *node, parent, column int, fresh bool) {
	if _, _, ok := s.key(); ok && fresh {
		s.items(n, column, object)
		return
	}
	switch {
	case s.at(s.pos, "{["):
		s.flowNode(n)
	case s.at(s.pos, `"'`):
		n.end = s.quoted(s.pos)
	default:
		n.end = s.plain(parent)
	}
	if after := s.blanks(n.end); fresh && s.at(after, ":") && s.gapAt(after+1) {
		s.fail("it has a key that is no plain text")
	}
	s.pos = n.end
}

// items reads a list or an object of lines, at column.
func (s *yamlScan) items(n *node, column int, k kind) {
	n.kind, n.block, n.column = k, true, column
	for s.err == nil {
		it := item{start: s.pos, after: s.pos + 1}
		if k == object {
			end, colon, ok := s.key()
			if !ok {
				s.fail("line %d has no key", bytes.Count(s.text[:s.pos], []byte("\n"))+1)
				return
			}
			it.key, it.after = s.decodeKey(s.pos, end), colon+1
		}
		it.value = s.value(column, k == object, k == list, it.after)
		it.end = it.value.end
		n.items, n.end = append(n.items, it), it.end
		s.pos = s.space(it.end)
		if s.over() || s.column() != column || !s.hasBreak(it.end, s.pos) || s.indicator("-") != (k == list) {
			return
		}
	}
}

// key looks for a key at pos: where it ends, and its colon.
func (s *yamlScan) key() (end, colon int, ok bool) {
	limit := lineEnd(s.text, s.pos)
	if s.at(s.pos, `"'`) {
		end = s.quoted(s.pos)
		colon = s.blanks(end)
		return end, colon, end <= limit && s.at(colon, ":") && s.gapAt(colon+1)
	}
	if s.at(s.pos, "{[") {
		return 0, 0, false
	}
	for i := s.pos; i < limit; i++ {
		switch {
		case s.text[i] == ':' && s.gapAt(i+1):
			return trimmed(s.text, s.pos, i), i, true
		case s.text[i] == '#' && i > s.pos && isBlank(s.text[i-1]):
			return 0, 0, false
		}
	}
	return 0, 0, false
}

func (s *yamlScan) decodeKey(start, end int) string {
	raw := s.text[start:end]
	if start == end || strings.IndexByte("\"'&!*", raw[0]) < 0 {
		return string(raw)
	}
	var v any
	if err := yaml.Unmarshal(raw, &v); err != nil {
		s.fail("the key %s is not understood", raw)
	}
	return fmt.Sprint(v)
}

// quoted returns the end of the string in quotes at pos.
func (s *yamlScan) quoted(pos int) int {
	q := s.text[pos]
	for pos++; pos < len(s.text); pos++ {
		switch {
		case s.text[pos] == '\\' && q == '"':
			pos++
		case s.text[pos] == q && q == '\'' && s.at(pos+1, "'"):
			pos++
		case s.text[pos] == q:
			return pos + 1
		}
	}
	s.fail("a string does not end")
	return len(s.text)
}

// plain returns the end of the scalar without quotes at pos, which may go on on lines that are indented deeper than parent.
func (s *yamlScan) plain(parent int) int {
	end, comment := s.plainLine(s.pos)
	for line := nextLine(s.text, end); !comment && line < len(s.text) && line > end; line = nextLine(s.text, line) {
		pos := s.blanks(line)
		if pos == lineEnd(s.text, pos) {
			continue
		}
		save := s.pos
		s.pos = line
		over := s.over()
		s.pos = save
		if over || pos-line <= parent || s.text[pos] == '#' {
			break
		}
		end, comment = s.plainLine(pos)
	}
	return end
}

// plainLine returns the end of a scalar's part on pos's line, and whether a comment follows.
func (s *yamlScan) plainLine(pos int) (end int, comment bool) {
	limit := lineEnd(s.text, pos)
	for i := pos; i < limit; i++ {
		if s.text[i] == '#' && i > pos && isBlank(s.text[i-1]) {
			return trimmed(s.text, pos, i), true
		}
	}
	return trimmed(s.text, pos, limit), false
}

// blockScalar returns the end of the | or > scalar at pos, without the blank lines behind it unless they are part of it.
func (s *yamlScan) blockScalar(parent int) int {
	limit := lineEnd(s.text, s.pos)
	end := s.pos
	for end < limit && !isBlank(s.text[end]) {
		end++
	}
	keep := bytes.IndexByte(s.text[s.pos:end], '+') >= 0
	blank := end
	for line := nextLine(s.text, end); line < len(s.text); line = nextLine(s.text, line) {
		pos := s.blanks(line)
		if pos == lineEnd(s.text, pos) {
			blank = pos
			continue
		}
		s.pos = line
		if pos-line <= parent || s.over() {
			break
		}
		end = lineEnd(s.text, line)
		blank = end
	}
	if keep {
		return blank
	}
	return end
}
