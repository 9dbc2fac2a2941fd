package edit

import (
	"bytes"
	"slices"
	"strings"
)

// splice replaces the text from start to end.
type splice struct {
	start, end int
	with       string
}

// applySplices applies splices, which must not overlap. Splices at the same position keep their
// order.
func applySplices(text []byte, splices []splice) ([]byte, error) {
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

// document is a text with helpers that understand its comments.
type document struct {
	text    []byte
	newline string

	// comment returns the end of the comment at pos, or pos if no comment begins there.
	comment func(text []byte, pos int) int
}

func newDocument(text []byte, comment func([]byte, int) int) document {
	d := document{text: text, newline: "\n", comment: comment}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		d.newline = "\r\n"
	}
	return d
}

// hashComment skips a YAML or TOML comment.
func hashComment(text []byte, pos int) int {
	if pos < len(text) && text[pos] == '#' {
		return lineEnd(text, pos)
	}
	return pos
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isSpace(c byte) bool { return isBlank(c) || c == '\n' || c == '\r' }

func lineStart(text []byte, pos int) int { return bytes.LastIndexByte(text[:pos], '\n') + 1 }

// lineEnd returns the end of pos's line, before the line break.
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

// nextLine returns the start of the line after pos's, or the end of the text.
func nextLine(text []byte, pos int) int {
	if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(text)
}

// indentAt returns the white space at the start of pos's line.
func (d *document) indentAt(pos int) string {
	start := lineStart(d.text, pos)
	return string(d.text[start:d.skipBlanks(start)])
}

// skipBlanks returns the first position at or after pos that holds no blank.
func (d *document) skipBlanks(pos int) int {
	for pos < len(d.text) && isBlank(d.text[pos]) {
		pos++
	}
	return pos
}

// skipSpace skips white space, line breaks and comments.
func (d *document) skipSpace(pos int) int {
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

// skipLineComments skips blanks and comments on pos's line, but no comment that continues on the
// next line. comments is the end of the last comment, or pos. atEnd reports whether nothing else
// follows on the line.
func (d *document) skipLineComments(pos int) (comments int, atEnd bool) {
	comments = pos
	for {
		pos = d.skipBlanks(pos)
		end := d.comment(d.text, pos)
		if end == pos || end > lineEnd(d.text, pos) {
			break
		}
		pos, comments = end, end
	}
	return comments, pos == lineEnd(d.text, pos)
}

// isFirstOnLine reports whether only blanks precede pos on its line.
func (d *document) isFirstOnLine(pos int) bool {
	return d.skipBlanks(lineStart(d.text, pos)) >= pos
}

// isComment reports whether the line that begins at start holds only a comment.
func (d *document) isComment(start int) bool {
	pos := d.skipBlanks(start)
	end := d.comment(d.text, pos)
	if end == pos || end > lineEnd(d.text, pos) {
		return false
	}
	_, atEnd := d.skipLineComments(pos)
	return atEnd
}

// commentsStart returns the start of the comments directly above the line at start. It leaves out
// comments at the start of the file, comments before limit, and lines that accept rejects.
func (d *document) commentsStart(start, limit int, accept func(line int) bool) int {
	at := start
	for at > limit {
		above := d.commentAbove(at)
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

// commentAbove returns the start of the comment that ends on the line above start, or start itself.
func (d *document) commentAbove(start int) int {
	if start == 0 {
		return start
	}
	line := lineStart(d.text, start-1)
	if d.isComment(line) {
		return line
	}
	// The line may end a comment of several lines.
	if !bytes.HasSuffix(bytes.TrimSpace(d.text[line:start]), []byte("*/")) {
		return start
	}
	open := bytes.LastIndex(d.text[:start], []byte("/*"))
	if open < 0 || !d.isFirstOnLine(open) {
		return start
	}
	if end := d.comment(d.text, open); end == open || d.skipBlanks(end) != lineEnd(d.text, line) {
		return start
	}
	return lineStart(d.text, open)
}

// cutLines removes the lines from start, which begins a line, to the line of end. If the last line
// has no line break, the break before start goes instead.
func (d *document) cutLines(start, end int) splice {
	end = nextLine(d.text, end)
	if end == len(d.text) && start > 0 && d.text[end-1] != '\n' {
		return splice{lineEnd(d.text, start-1), end, ""}
	}
	return splice{start, end, ""}
}

// blankOnly reports whether a span holds only white space.
func (d *document) blankOnly(start, end int) bool {
	return len(bytes.TrimSpace(d.text[start:end])) == 0
}

func (d *document) hasBreak(start, end int) bool {
	return bytes.IndexByte(d.text[start:end], '\n') >= 0
}

// appendLines returns the splice that adds lines to a text that holds only comments.
func (d *document) appendLines(lines string) splice {
	n := len(d.text)
	if n > 0 && d.text[n-1] != '\n' {
		if d.skipBlanks(lineStart(d.text, n)) == n { // blanks on the last line would indent the new lines
			return splice{lineStart(d.text, n), n, lines + d.newline}
		}
		return splice{n, n, d.newline + lines}
	}
	return splice{n, n, lines + d.newline}
}

// quoteString writes a string in double quotes with escapes that TOML, YAML and JSON all
// understand.
func quoteString(s string) string {
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
