package schema

import (
	"slices"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// fail is the position that a scan returns when it stops early: the bytes are malformed, the value
// is invalid, or the work bound is reached.
const fail = -1

// scan reads JSON text. Its methods take the index of a token's first byte and
// return the index after it.
type scan struct {
	data  []byte
	depth int
	// trusted is above 0 where the bytes have been read before: then they are
	// well-formed, and duplicate names and encodings need no second look.
	trusted int
	syntax  string // the syntax error at errAt, or ""
	errAt   int
	names   *names // taken from the pool when first needed
}

func (s *scan) malformed(i int, what string) int {
	if s.syntax == "" {
		s.syntax, s.errAt = what, i
	}
	return fail
}

// byteAt is the byte at i, or 0 after the end.
func (s *scan) byteAt(i int) byte {
	if i < len(s.data) {
		return s.data[i]
	}
	return 0
}

func (s *scan) skipSpace(i int) int { return rawjson.Space(s.data, i) }

// stringFaults words the faults of string literals.
var stringFaults = [...]string{
	rawjson.Unterminated:         "unexpected end inside a string",
	rawjson.ControlCharacter:     "control character in a string",
	rawjson.InvalidUTF8:          "invalid UTF-8",
	rawjson.InvalidEscape:        "invalid escape in a string",
	rawjson.InvalidUnicodeEscape: `invalid \u escape`,
	rawjson.UnpairedSurrogate:    "unpaired surrogate in a string",
}

// readString reads a string literal.
func (s *scan) readString(i int) (end int, content rawjson.StringContent) {
	rules := rawjson.RefuseLoneSurrogates
	if s.trusted > 0 {
		rules |= rawjson.SkipUTF8Check
	}
	end, content, fault := rawjson.ScanString(s.data, i, rules)
	if fault != rawjson.NoFault {
		return s.malformed(end, stringFaults[fault]), content
	}
	return end, content
}

// readNumber reads a number; whole says that it has neither fraction nor exponent.
func (s *scan) readNumber(i int) (end int, whole bool) {
	end, whole, ok := rawjson.ScanNumber(s.data, i)
	if !ok {
		return s.malformed(end, "invalid number"), false
	}
	return end, whole
}

func (s *scan) readWord(i int, word string) int {
	if i+len(word) > len(s.data) || string(s.data[i:i+len(word)]) != word {
		return s.malformed(i, "invalid value")
	}
	return i + len(word)
}

// skipValue reads any value and checks only its syntax.
func (s *scan) skipValue(i int) int {
	switch s.byteAt(i) {
	case '{':
		return s.skipObject(i)
	case '[':
		return s.skipArray(i)
	case '"':
		end, _ := s.readString(i)
		return end
	case 't':
		return s.readWord(i, "true")
	case 'f':
		return s.readWord(i, "false")
	case 'n':
		return s.readWord(i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end, _ := s.readNumber(i)
		return end
	}
	return s.noValue(i)
}

func (s *scan) noValue(i int) int {
	if i >= len(s.data) {
		return s.malformed(i, "unexpected end")
	}
	return s.malformed(i, "invalid value")
}

const tooDeep = "nested too deeply"

// enterNested reads an opening bracket, and returns the index of the next token.
func (s *scan) enterNested(i int) int {
	if s.depth++; s.depth > maxDepth {
		return s.malformed(i, tooDeep)
	}
	return s.skipSpace(i + 1)
}

// readSeparator reads the token after a member or an item. After a comma, it returns the index of
// the next member or item, and more is true. After the closing bracket, more is false.
func (s *scan) readSeparator(i int, closing byte) (end int, more bool) {
	i = s.skipSpace(i)
	switch s.byteAt(i) {
	case ',':
		return s.skipSpace(i + 1), true
	case closing:
		s.depth--
		return i + 1, false
	}
	return s.malformed(i, "expected a comma or the closing bracket"), false
}

// readKey reads a member's name and the colon. The name is unescaped, and lives
// until its object ends. value is the index of the member's value.
func (s *scan) readKey(i int) (name []byte, value int) {
	if s.byteAt(i) != '"' {
		return nil, s.malformed(i, "expected a member name")
	}
	end, content := s.readString(i)
	if end < 0 {
		return nil, fail
	}
	name = s.data[i+1 : end-1]
	if content&rawjson.HasEscape != 0 {
		name = s.unescape(s.data[i:end])
	}
	if end = s.skipSpace(end); s.byteAt(end) != ':' {
		return nil, s.malformed(end, "expected a colon")
	}
	return name, s.skipSpace(end + 1)
}

func (s *scan) skipArray(i int) int {
	if i = s.enterNested(i); i < 0 {
		return fail
	}
	if s.byteAt(i) == ']' {
		s.depth--
		return i + 1
	}
	for more := true; more; {
		if i = s.skipValue(i); i < 0 {
			return fail
		}
		if i, more = s.readSeparator(i, ']'); i < 0 {
			return fail
		}
	}
	return i
}

func (s *scan) skipObject(i int) int {
	if i = s.enterNested(i); i < 0 {
		return fail
	}
	if s.byteAt(i) == '}' {
		s.depth--
		return i + 1
	}
	mark := s.markNames()
	for more := true; more; {
		name, value := s.readKey(i)
		if value < 0 {
			return fail
		}
		if s.trusted == 0 && !s.addName(mark, name) {
			return s.malformed(i, "duplicate name in an object")
		}
		if i = s.skipValue(value); i < 0 {
			return fail
		}
		if i, more = s.readSeparator(i, '}'); i < 0 {
			return fail
		}
	}
	if !s.endObject(mark) {
		return s.malformed(i-1, "duplicate name in an object")
	}
	return i
}

// readAll reads the one value that the data has to be.
func (s *scan) readAll() bool {
	return s.expectEnd(s.skipValue(s.skipSpace(0)))
}

// expectEnd says that nothing follows i, where a value ended.
func (s *scan) expectEnd(i int) bool {
	if i < 0 {
		return false
	}
	if i = s.skipSpace(i); i < len(s.data) {
		s.malformed(i, "unexpected data after the value")
		return false
	}
	return true
}

// unescape decodes the inside of a string literal, which is well-formed, into
// memory that lives until the mark before it is forgotten.
func (s *scan) unescape(literal []byte) []byte {
	s.borrowNames()
	from := len(s.names.text)
	s.names.text = appendUnescaped(s.names.text, literal)
	return slices.Clip(s.names.text[from:])
}
