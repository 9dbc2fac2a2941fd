package edit

import (
	"bytes"
	"slices"
	"strings"
)

// splice replaces a span of a text.
type splice struct {
	start, end int
	with       string
}

// apply makes splices, which must not overlap. Those at the same place keep their order.
func apply(text []byte, splices []splice) ([]byte, error) {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, s := range splices {
		if s.start < at || s.end < s.start || s.end > len(text) {
			return nil, ErrUnsafe
		}
		out = append(append(out, text[at:s.start]...), s.with...)
		at = s.end
	}
	return append(out, text[at:]...), nil
}

// document is a text whose comments a dialect knows how to read.
type document struct {
	text    []byte
	newline string

	// comment returns the end of the comment that begins at pos, or pos.
	comment func(text []byte, pos int) int
}

func newDocument(text []byte, comment func([]byte, int) int) document {
	d := document{text: text, newline: "\n", comment: comment}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		d.newline = "\r\n"
	}
	return d
}

// hashComment reads the comments of YAML and TOML.
func hashComment(text []byte, pos int) int {
	if pos < len(text) && text[pos] == '#' {
		return lineEnd(text, pos)
	}
	return pos
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isSpace(c byte) bool { return isBlank(c) || c == '\n' || c == '\r' }

func lineStart(text []byte, pos int) int { return bytes.LastIndexByte(text[:pos], '\n') + 1 }

// lineEnd returns where pos's line ends, before its line break.
func lineEnd(text []byte, pos int) int {
	i := bytes.IndexByte(text[pos:], '\n')
	switch {
	case i < 0:
		return len(text)
	case i > 0 && text[pos+i-1] == '\r':
		return pos + i - 1
	}
	return pos + i
}

// nextLine returns where the line behind pos's begins, or the end of the text.
func nextLine(text []byte, pos int) int {
	if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(text)
}

// indent returns the white space that pos's line begins with.
func (d *document) indent(pos int) string {
	start := lineStart(d.text, pos)
	return string(d.text[start:d.blanks(start)])
}

// blanks returns the first position from pos on that has no blank.
func (d *document) blanks(pos int) int {
	for pos < len(d.text) && isBlank(d.text[pos]) {
		pos++
	}
	return pos
}

// space passes white space, line breaks and comments.
func (d *document) space(pos int) int {
	for pos < len(d.text) {
		if isSpace(d.text[pos]) {
			pos++
			continue
		}
		end := d.comment(d.text, pos)
		if end == pos {
			break
		}
		pos = end
	}
	return pos
}

// behind passes blanks and comments on pos's line; a comment that goes on on the next line is not passed. atEnd is whether
// nothing else follows on the line, and comments the end of the last comment, or pos.
func (d *document) behind(pos int) (comments int, atEnd bool) {
	comments = pos
	for {
		pos = d.blanks(pos)
		end := d.comment(d.text, pos)
		if end == pos || end > lineEnd(d.text, pos) {
			break
		}
		pos, comments = end, end
	}
	return comments, pos == lineEnd(d.text, pos)
}

// first reports whether only blanks are before pos on its line.
func (d *document) first(pos int) bool {
	return d.blanks(lineStart(d.text, pos)) >= pos
}

// isComment reports whether there is nothing but a comment on the line that begins at start.
func (d *document) isComment(start int) bool {
	pos := d.blanks(start)
	end := d.comment(d.text, pos)
	if end == pos || end > lineEnd(d.text, pos) {
		return false
	}
	_, atEnd := d.behind(pos)
	return atEnd
}

// attached returns where the comments begin that stand directly above the line that begins at start. Comments that the
// file begins with, and those before limit, are not among them.
func (d *document) attached(start, limit int, accept func(line int) bool) int {
	at := start
	for at > limit {
		above := d.above(at)
		if above == at || above < limit || !accept(above) {
			break
		}
		at = above
	}
	if at == 0 {
		return start
	}
	return at
}

// above returns the start of the comment on the lines right above the line at start; start if there is none.
func (d *document) above(start int) int {
	if start == 0 {
		return start
	}
	line := lineStart(d.text, start-1)
	if d.isComment(line) {
		return line
	}
	// The end of a comment of several lines.
	if !bytes.HasSuffix(bytes.TrimSpace(d.text[line:start]), []byte("*/")) {
		return start
	}
	open := bytes.LastIndex(d.text[:start], []byte("/*"))
	if open < 0 || !d.first(open) {
		return start
	}
	if end := d.comment(d.text, open); end == open || d.blanks(end) != lineEnd(d.text, line) {
		return start
	}
	return lineStart(d.text, open)
}

// cut removes the lines from start, where one begins, to the one of end. Where the last line has no line break, the one before goes.
func (d *document) cut(start, end int) splice {
	end = nextLine(d.text, end)
	if end == len(d.text) && start > 0 && d.text[end-1] != '\n' {
		return splice{lineEnd(d.text, start-1), end, ""}
	}
	return splice{start, end, ""}
}

// blankOnly reports whether there is only white space in a span.
func (d *document) blankOnly(start, end int) bool {
	return len(bytes.TrimSpace(d.text[start:end])) == 0
}

func (d *document) hasBreak(start, end int) bool {
	return bytes.IndexByte(d.text[start:end], '\n') >= 0
}

// appended returns the splice that puts lines at the end of a text that has nothing but comments.
func (d *document) appended(lines string) splice {
	n := len(d.text)
	if n > 0 && d.text[n-1] != '\n' {
		if d.blanks(lineStart(d.text, n)) == n { // a last line of blanks, which would be an indentation
			return splice{lineStart(d.text, n), n, lines + d.newline}
		}
		return splice{n, n, d.newline + lines}
	}
	return splice{n, n, lines + d.newline}
}

// quote writes a string in the double quotes of TOML, which are YAML's and JSON's too.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x20, 0x7f <= r && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			const hex = "0123456789abcdef"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(hex[r>>shift&15])
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
