package edit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// yamlScan finds the positions of the values in a text. The YAML library reads the same text, so
// the scan need not find every error, but it must not loop or panic. The library's own positions
// are not used: they count runes and lines, differently for each kind of token.
type yamlScan struct {
	document
	pos   int
	depth int
	err   error
}

func scanYAML(text []byte) (*node, error) {
	s := &yamlScan{document: newDocument(text, yamlComment)}
	s.pos = s.skipSpace(0)
	for s.pos < len(text) && text[s.pos] == '%' { // directives
		s.pos = s.skipSpace(lineEnd(text, s.pos))
	}
	from := 0
	if s.isMarker("---") {
		s.pos += 3
		from = s.pos
	}
	n := s.scanValue(-1, false, true, from)
	if s.err != nil {
		return nil, s.err
	}
	s.pos = s.skipSpace(n.end)
	if s.isMarker("...") {
		s.pos = s.skipSpace(s.pos + 3)
	}
	switch {
	case s.pos == len(text):
	case s.isMarker("---"):
		return nil, fmt.Errorf("it has several documents: %w", ErrUnsafe)
	default:
		s.setError("line %d is not understood", bytes.Count(text[:s.pos], []byte("\n"))+1)
	}
	if n.start == n.end {
		n.start = s.rootStart(from)
		n.end = n.start
	}
	return n, s.err
}

// rootStart returns the position for a file's first value: after all comments, before an end
// marker.
func (s *yamlScan) rootStart(from int) int {
	pos := s.skipSpace(from)
	if pos < len(s.text) {
		return lineStart(s.text, pos)
	}
	return len(s.text)
}

func (s *yamlScan) setError(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format+": %w", append(args, ErrUnsafe)...)
	}
}

// isAt reports whether pos holds one of the bytes in set.
func (s *yamlScan) isAt(pos int, set string) bool {
	return pos < len(s.text) && strings.IndexByte(set, s.text[pos]) >= 0
}

// isGap reports whether pos holds white space or is the end of the text.
func (s *yamlScan) isGap(pos int) bool { return pos >= len(s.text) || isSpace(s.text[pos]) }

func (s *yamlScan) isIndicator(c string) bool { return s.isAt(s.pos, c) && s.isGap(s.pos+1) }

func (s *yamlScan) isMarker(m string) bool {
	return s.pos == lineStart(s.text, min(s.pos, len(s.text))) && bytes.HasPrefix(s.text[s.pos:], []byte(m)) && s.isGap(s.pos+3)
}

// isAtEnd reports whether the document ends at the current position.
func (s *yamlScan) isAtEnd() bool {
	return s.err != nil || s.pos >= len(s.text) || s.isMarker("---") || s.isMarker("...")
}

func (s *yamlScan) currentColumn() int { return s.pos - lineStart(s.text, s.pos) }

// scanValue reads the value after from, for a parent at column parent. dashes means that a list may
// begin at the parent's own column. fresh means that a list or object may begin at the current
// position.
func (s *yamlScan) scanValue(parent int, dashes, fresh bool, from int) *node {
	if s.depth++; s.depth > maxDepth {
		s.setError("it is nested deeper than %d levels", maxDepth)
	}
	defer func() { s.depth-- }()
	n := &node{start: from, end: from}
	s.pos = from
	column := -1 // of the first token on the line
	for s.err == nil {
		at := s.pos
		s.pos = s.skipSpace(s.pos)
		if s.hasBreak(at, s.pos) {
			fresh, column = true, -1
		}
		if s.isAtEnd() {
			return n
		}
		if c := s.currentColumn(); s.hasBreak(from, s.pos) && c <= parent && !(dashes && c == parent && s.isIndicator("-")) {
			return n
		}
		if column < 0 {
			column = s.currentColumn()
		}
		if !s.isAt(s.pos, "&!") {
			break
		}
		for !s.isGap(s.pos) {
			s.pos++
		}
		n.start, n.end = s.pos, s.pos
	}
	if s.err != nil {
		return n
	}
	n.start = s.pos
	switch {
	case s.isIndicator("-") && fresh:
		s.scanItems(n, column, list)
	case s.isIndicator("?"):
		s.setError("it has explicit keys")
	case s.isAt(s.pos, "|>"):
		n.end = s.endOfBlockScalar(parent)
	default:
		s.scanScalarOrObject(n, parent, column, fresh)
	}
	return n
}

func (s *yamlScan) scanScalarOrObject(n *node, parent, column int, fresh bool) {
	if _, _, ok := s.findKey(); ok && fresh {
		s.scanItems(n, column, object)
		return
	}
	switch {
	case s.isAt(s.pos, "{["):
		s.scanFlow(n)
	case s.isAt(s.pos, `"'`):
		n.end = s.endOfString(s.pos)
	default:
		n.end = s.endOfPlain(parent)
	}
	if after := s.skipBlanks(n.end); fresh && s.isAt(after, ":") && s.isGap(after+1) {
		s.setError("it has a key that is not plain text")
	}
	s.pos = n.end
}

// scanItems reads a list or an object with lines at column.
func (s *yamlScan) scanItems(n *node, column int, k kind) {
	n.kind, n.block, n.column = k, true, column
	for s.err == nil {
		it := item{start: s.pos, after: s.pos + 1}
		if k == object {
			end, colon, ok := s.findKey()
			if !ok {
				s.setError("line %d has no key", bytes.Count(s.text[:s.pos], []byte("\n"))+1)
				return
			}
			it.key, it.after = s.decodeKey(s.pos, end), colon+1
		}
		it.value = s.scanValue(column, k == object, k == list, it.after)
		it.end = it.value.end
		n.items, n.end = append(n.items, it), it.end
		s.pos = s.skipSpace(it.end)
		if s.isAtEnd() || s.currentColumn() != column || !s.hasBreak(it.end, s.pos) || s.isIndicator("-") != (k == list) {
			return
		}
	}
}

// findKey finds the end of the key at pos and its colon. ok is false if pos holds no key.
func (s *yamlScan) findKey() (end, colon int, ok bool) {
	limit := lineEnd(s.text, s.pos)
	if s.isAt(s.pos, `"'`) {
		end = s.endOfString(s.pos)
		colon = s.skipBlanks(end)
		return end, colon, end <= limit && s.isAt(colon, ":") && s.isGap(colon+1)
	}
	if s.isAt(s.pos, "{[") {
		return 0, 0, false
	}
	for i := s.pos; i < limit; i++ {
		switch {
		case s.text[i] == ':' && s.isGap(i+1):
			return trimmedEnd(s.text, s.pos, i), i, true
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
		s.setError("the key %s is not understood", raw)
	}
	return fmt.Sprint(v)
}

// endOfString returns the end of the quoted string at pos.
func (s *yamlScan) endOfString(pos int) int {
	q := s.text[pos]
	for pos++; pos < len(s.text); pos++ {
		switch {
		case s.text[pos] == '\\' && q == '"':
			pos++
		case s.text[pos] == q && q == '\'' && s.isAt(pos+1, "'"):
			pos++
		case s.text[pos] == q:
			return pos + 1
		}
	}
	s.setError("a string does not end")
	return len(s.text)
}

// endOfPlain returns the end of the unquoted scalar at pos. It may continue on lines that are
// indented deeper than parent.
func (s *yamlScan) endOfPlain(parent int) int {
	end, comment := s.endOfPlainLine(s.pos)
	for line := nextLine(s.text, end); !comment && line < len(s.text) && line > end; line = nextLine(s.text, line) {
		pos := s.skipBlanks(line)
		if pos == lineEnd(s.text, pos) {
			continue
		}
		save := s.pos
		s.pos = line
		over := s.isAtEnd()
		s.pos = save
		if over || pos-line <= parent || s.text[pos] == '#' {
			break
		}
		end, comment = s.endOfPlainLine(pos)
	}
	return end
}

// endOfPlainLine returns the end of a scalar's part on pos's line, and whether a comment follows
// it.
func (s *yamlScan) endOfPlainLine(pos int) (end int, comment bool) {
	limit := lineEnd(s.text, pos)
	for i := pos; i < limit; i++ {
		if s.text[i] == '#' && i > pos && isBlank(s.text[i-1]) {
			return trimmedEnd(s.text, pos, i), true
		}
	}
	return trimmedEnd(s.text, pos, limit), false
}

// endOfBlockScalar returns the end of the | or > scalar at pos. Trailing blank lines are included
// only if the scalar keeps them.
func (s *yamlScan) endOfBlockScalar(parent int) int {
	limit := lineEnd(s.text, s.pos)
	end := s.pos
	for end < limit && !isBlank(s.text[end]) {
		end++
	}
	keep := bytes.IndexByte(s.text[s.pos:end], '+') >= 0
	blank := end
	for line := nextLine(s.text, end); line < len(s.text); line = nextLine(s.text, line) {
		pos := s.skipBlanks(line)
		if pos == lineEnd(s.text, pos) {
			blank = pos
			continue
		}
		s.pos = line
		if pos-line <= parent || s.isAtEnd() {
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
