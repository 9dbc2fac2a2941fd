package schema

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// fail is the position that a scan returns when it has come to an end: the
// bytes are malformed, the value is invalid, or the work bound is reached.
const fail = -1

// scan reads JSON text. Its methods take the index of a token's first byte and
// return the index after it.
type scan struct {
	data  []byte
	depth int
	// trusted is above 0 where the bytes have been read before: then they are
	// well-formed, and duplicate names and encodings need no second look.
	trusted int
	syntax  string // what is malformed, at errAt; empty while nothing is
	errAt   int
	names   *names // taken from the pool when first needed
}

func (s *scan) malformed(i int, what string) int {
	if s.syntax == "" {
		s.syntax, s.errAt = what, i
	}
	return fail
}

// at is the byte at i, or 0 after the end.
func (s *scan) at(i int) byte {
	if i < len(s.data) {
		return s.data[i]
	}
	return 0
}

func (s *scan) space(i int) int {
	for i < len(s.data) && s.data[i] <= ' ' {
		switch s.data[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}

// textFlags say what a string literal holds beside plain ASCII.
type textFlags uint8

const (
	hasEscape textFlags = 1 << iota
	hasUnicode
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// text reads a string literal.
func (s *scan) text(i int) (end int, flags textFlags) {
	data := s.data
	for i++; i < len(data); {
		if i+8 <= len(data) {
			m := special(binary.LittleEndian.Uint64(data[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) / 8
		}
		switch b := data[i]; {
		case b == '"':
			return i + 1, flags
		case b == '\\':
			flags |= hasEscape
			i = s.escape(i)
		case b >= utf8.RuneSelf:
			flags |= hasUnicode
			i = s.unicode(i)
		case b < ' ':
			return s.malformed(i, "control character in a string"), flags
		default:
			i++
		}
		if i < 0 {
			return fail, flags
		}
	}
	return s.malformed(len(data), "unexpected end inside a string"), flags
}

// special marks, among the eight characters of x, the first that is a quote, a
// backslash, a control character or beyond ASCII, by its highest bit. Above the
// first, marks can be wrong.
func special(x uint64) uint64 {
	quote, slash := x^(lowBits*'"'), x^(lowBits*'\\')
	return ((x-lowBits*' ')&^x | (quote-lowBits)&^quote | (slash-lowBits)&^slash | x) & highBits
}

// unicode reads the characters beyond ASCII from i on.
func (s *scan) unicode(i int) int {
	for i < len(s.data) && s.data[i] >= utf8.RuneSelf {
		if s.trusted > 0 {
			i++
			continue
		}
		r, n := utf8.DecodeRune(s.data[i:])
		if r == utf8.RuneError && n == 1 {
			return s.malformed(i, "invalid UTF-8")
		}
		i += n
	}
	return i
}

func (s *scan) escape(i int) int {
	switch s.at(i + 1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		r := s.hex(i + 2)
		switch {
		case r < 0:
			return s.malformed(i, `invalid \u escape`)
		case r >= 0xDC00 && r <= 0xDFFF:
			return s.malformed(i, "unpaired surrogate in a string")
		case r < 0xD800 || r > 0xDBFF:
			return i + 6
		}
		if low := s.hex(i + 8); s.at(i+6) == '\\' && s.at(i+7) == 'u' && low >= 0xDC00 && low <= 0xDFFF {
			return i + 12
		}
		return s.malformed(i, "unpaired surrogate in a string")
	}
	return s.malformed(i, "invalid escape in a string")
}

// hex is the value of the four hexadecimal digits at i, or -1.
func (s *scan) hex(i int) rune {
	if i+4 > len(s.data) {
		return -1
	}
	var r rune
	for _, b := range s.data[i : i+4] {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			r = r<<4 | rune(b|0x20-'a'+10)
		default:
			return -1
		}
	}
	return r
}

// number reads a number; whole says that it has neither fraction nor exponent.
func (s *scan) number(i int) (end int, whole bool) {
	if s.at(i) == '-' {
		i++
	}
	switch b := s.at(i); {
	case b == '0':
		i++
	case b >= '1' && b <= '9':
		i = s.digits(i)
	default:
		return s.malformed(i, "invalid number"), false
	}
	whole = true
	if s.at(i) == '.' {
		j := s.digits(i + 1)
		if j == i+1 {
			return s.malformed(j, "invalid number"), false
		}
		i, whole = j, false
	}
	if s.at(i)|0x20 == 'e' {
		j := i + 1
		if b := s.at(j); b == '+' || b == '-' {
			j++
		}
		if i = s.digits(j); i == j {
			return s.malformed(j, "invalid number"), false
		}
		whole = false
	}
	return i, whole
}

func (s *scan) digits(i int) int {
	for i < len(s.data) && s.data[i]-'0' <= 9 {
		i++
	}
	return i
}

func (s *scan) word(i int, word string) int {
	if i+len(word) > len(s.data) || string(s.data[i:i+len(word)]) != word {
		return s.malformed(i, "invalid value")
	}
	return i + len(word)
}

// skip reads any value, holding it to nothing but the form of JSON.
func (s *scan) skip(i int) int {
	switch s.at(i) {
	case '{':
		return s.skipObject(i)
	case '[':
		return s.skipArray(i)
	case '"':
		end, _ := s.text(i)
		return end
	case 't':
		return s.word(i, "true")
	case 'f':
		return s.word(i, "false")
	case 'n':
		return s.word(i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end, _ := s.number(i)
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

// enter is called at an opening bracket, and returns the index of what follows.
func (s *scan) enter(i int) int {
	if s.depth++; s.depth > MaxDepth {
		return s.malformed(i, tooDeep)
	}
	return s.space(i + 1)
}

// next reads what may follow a member or an item: a comma, whose successor's
// index it returns with more, or the closing bracket.
func (s *scan) next(i int, closing byte) (end int, more bool) {
	i = s.space(i)
	switch s.at(i) {
	case ',':
		return s.space(i + 1), true
	case closing:
		s.depth--
		return i + 1, false
	}
	return s.malformed(i, "expected a comma or the closing bracket"), false
}

// key reads a member's name and the colon. The name is unescaped, and lives
// until its object ends. value is the index of the member's value.
func (s *scan) key(i int) (name []byte, value int) {
	if s.at(i) != '"' {
		return nil, s.malformed(i, "expected a member name")
	}
	end, flags := s.text(i)
	if end < 0 {
		return nil, fail
	}
	name = s.data[i+1 : end-1]
	if flags&hasEscape != 0 {
		name = s.unescape(name)
	}
	if end = s.space(end); s.at(end) != ':' {
		return nil, s.malformed(end, "expected a colon")
	}
	return name, s.space(end + 1)
}

func (s *scan) skipArray(i int) int {
	if i = s.enter(i); i < 0 {
		return fail
	}
	if s.at(i) == ']' {
		s.depth--
		return i + 1
	}
	for more := true; more; {
		if i = s.skip(i); i < 0 {
			return fail
		}
		if i, more = s.next(i, ']'); i < 0 {
			return fail
		}
	}
	return i
}

func (s *scan) skipObject(i int) int {
	if i = s.enter(i); i < 0 {
		return fail
	}
	if s.at(i) == '}' {
		s.depth--
		return i + 1
	}
	mark := s.mark()
	for more := true; more; {
		name, value := s.key(i)
		if value < 0 {
			return fail
		}
		if s.trusted == 0 && !s.remember(mark, name) {
			return s.malformed(i, "duplicate name in an object")
		}
		if i = s.skip(value); i < 0 {
			return fail
		}
		if i, more = s.next(i, '}'); i < 0 {
			return fail
		}
	}
	if !s.forget(mark) {
		return s.malformed(i-1, "duplicate name in an object")
	}
	return i
}

// whole reads the one value that the data has to be.
func (s *scan) whole() bool {
	return s.end(s.skip(s.space(0)))
}

// end says that nothing follows i, where a value ended.
func (s *scan) end(i int) bool {
	if i < 0 {
		return false
	}
	if i = s.space(i); i < len(s.data) {
		s.malformed(i, "unexpected data after the value")
		return false
	}
	return true
}

// unescape decodes the inside of a string literal, which is well-formed, into
// memory that lives until the mark before it is forgotten.
func (s *scan) unescape(text []byte) []byte {
	s.borrow()
	from := len(s.names.text)
	s.names.text = appendUnescaped(s.names.text, text)
	return slices.Clip(s.names.text[from:])
}
