// Package rawjson reads JSON where it lies: it checks bytes once, finds members of an object and edits one without
// decoding the rest. Everything that is not asked for keeps its bytes, so unknown fields and number text survive.
//
// [Check] is for bytes from outside; [Object], [Array], [Lookup] and the editing functions trust bytes that passed it.
package rawjson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth bounds the nesting that [Check] accepts.
const MaxDepth = 256

// ErrDepth is wrapped by the error for a value nested deeper than [MaxDepth].
var ErrDepth = errors.New("nested too deeply")

// ErrNoObject is the error for JSON that is no object where one is needed.
var ErrNoObject = errors.New("not an object")

// SyntaxError says where bytes stop being JSON.
type SyntaxError struct {
	Offset int
	Reason string
	err    error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

func (e *SyntaxError) Unwrap() error { return e.err }

func syntax(at int, reason string) (int, error) {
	return 0, &SyntaxError{Offset: at, Reason: reason}
}

// Check verifies that data, from pos on, starts with one JSON value (RFC 8259, valid UTF-8, at most [MaxDepth] levels)
// and returns the offset behind it. Names that occur twice in one object are not looked for.
func Check(data []byte, pos int) (int, error) { return check(data, pos, 0) }

// CheckAll is [Check] for data that must hold one value and white space, nothing else.
func CheckAll(data []byte) error {
	end, err := Check(data, Space(data, 0))
	if err != nil {
		return err
	}
	if end = Space(data, end); end != len(data) {
		_, err = syntax(end, "something follows the value")
	}
	return err
}

// CheckObject is [CheckAll] for data that must hold an object: member is called for each of its members, in order. The
// error for another value is [ErrNoObject].
func CheckObject(data []byte, member func(key, value []byte)) error {
	pos := Space(data, 0)
	if pos >= len(data) || data[pos] != '{' {
		if err := CheckAll(data); err != nil {
			return err
		}
		return ErrNoObject
	}
	end, err := checkMembers(data, pos, 1, member)
	if err != nil {
		return err
	}
	if end = Space(data, end); end != len(data) {
		_, err = syntax(end, "something follows the value")
	}
	return err
}

func check(data []byte, pos, depth int) (int, error) {
	if pos >= len(data) {
		return syntax(pos, "the input ends here")
	}
	switch c := data[pos]; {
	case c == '"':
		return checkString(data, pos)
	case c == '{':
		return checkObject(data, pos, depth+1)
	case c == '[':
		return checkArray(data, pos, depth+1)
	case c == '-' || c >= '0' && c <= '9':
		return checkNumber(data, pos)
	case c == 't':
		return checkWord(data, pos, "true")
	case c == 'f':
		return checkWord(data, pos, "false")
	case c == 'n':
		return checkWord(data, pos, "null")
	}
	return syntax(pos, fmt.Sprintf("%q starts no value", data[pos]))
}

func checkWord(data []byte, pos int, word string) (int, error) {
	if end := pos + len(word); end <= len(data) && string(data[pos:end]) == word {
		return end, nil
	}
	return syntax(pos, "expected "+word)
}

func tooDeep(pos int) (int, error) {
	return 0, &SyntaxError{Offset: pos, Reason: fmt.Sprintf("nested deeper than %d levels", MaxDepth), err: ErrDepth}
}

func checkObject(data []byte, pos, depth int) (int, error) {
	return checkMembers(data, pos, depth, nil)
}

// checkMembers checks an object and gives each of its members to member, where that is not nil.
func checkMembers(data []byte, pos, depth int, member func(key, value []byte)) (int, error) {
	if depth > MaxDepth {
		return tooDeep(pos)
	}
	pos = Space(data, pos+1)
	if pos < len(data) && data[pos] == '}' {
		return pos + 1, nil
	}
	for {
		if pos >= len(data) || data[pos] != '"' {
			return syntax(pos, "expected a member name")
		}
		end, err := checkString(data, pos)
		if err != nil {
			return 0, err
		}
		key := data[pos:end]
		pos = Space(data, end)
		if pos >= len(data) || data[pos] != ':' {
			return syntax(pos, "expected ':'")
		}
		pos = Space(data, pos+1)
		if end, err = check(data, pos, depth); err != nil {
			return 0, err
		}
		if member != nil {
			member(unescape(key), data[pos:end])
		}
		pos = Space(data, end)
		if pos < len(data) && data[pos] == '}' {
			return pos + 1, nil
		}
		if pos >= len(data) || data[pos] != ',' {
			return syntax(pos, "expected ',' or '}'")
		}
		pos = Space(data, pos+1)
	}
}

func checkArray(data []byte, pos, depth int) (int, error) {
	if depth > MaxDepth {
		return tooDeep(pos)
	}
	pos = Space(data, pos+1)
	if pos < len(data) && data[pos] == ']' {
		return pos + 1, nil
	}
	for {
		end, err := check(data, pos, depth)
		if err != nil {
			return 0, err
		}
		pos = Space(data, end)
		if pos < len(data) && data[pos] == ']' {
			return pos + 1, nil
		}
		if pos >= len(data) || data[pos] != ',' {
			return syntax(pos, "expected ',' or ']'")
		}
		pos = Space(data, pos+1)
	}
}

func checkNumber(data []byte, pos int) (int, error) {
	start := pos
	if data[pos] == '-' {
		pos++
	}
	first := pos
	pos = digits(data, pos)
	if pos == first || data[first] == '0' && pos > first+1 {
		return syntax(start, "malformed number")
	}
	if pos < len(data) && data[pos] == '.' {
		frac := pos + 1
		if pos = digits(data, frac); pos == frac {
			return syntax(start, "malformed number")
		}
	}
	if pos < len(data) && (data[pos] == 'e' || data[pos] == 'E') {
		pos++
		if pos < len(data) && (data[pos] == '+' || data[pos] == '-') {
			pos++
		}
		exp := pos
		if pos = digits(data, exp); pos == exp {
			return syntax(start, "malformed number")
		}
	}
	return pos, nil
}

func digits(data []byte, pos int) int {
	for pos < len(data) && data[pos] >= '0' && data[pos] <= '9' {
		pos++
	}
	return pos
}

func checkString(data []byte, pos int) (int, error) {
	start := pos
	pos++
	for {
		pos += plain(data[pos:])
		if pos >= len(data) {
			return syntax(start, "the string does not end")
		}
		switch c := data[pos]; {
		case c == '"':
			return pos + 1, nil
		case c == '\\':
			n := escape(data[pos:])
			if n == 0 {
				return syntax(pos, "malformed escape")
			}
			pos += n
		case c < 0x20:
			return syntax(pos, "control character in a string")
		default:
			r, n := utf8.DecodeRune(data[pos:])
			if r == utf8.RuneError && n == 1 {
				return syntax(pos, "invalid UTF-8")
			}
			pos += n
		}
	}
}

// escape returns the length of the escape sequence at the start of b, 0 if it is malformed.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns how many bytes at the start of b are printable ASCII other than '"' and '\', eight at a time.
func plain(b []byte) int {
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		special := (w | (w - 0x20*ones) | (quote - ones) | (slash - ones)) & highs
		if special != 0 {
			return n + exact(b[n:n+bits.TrailingZeros64(special)/8+1])
		}
	}
	return n + exact(b[n:])
}

func exact(b []byte) int {
	for i, c := range b {
		if c == '"' || c == '\\' || c < 0x20 || c >= 0x80 {
			return i
		}
	}
	return len(b)
}

// Space returns the offset of the first byte at or behind pos that is no JSON white space.
func Space(data []byte, pos int) int {
	for pos < len(data) && (data[pos] == ' ' || data[pos] == '\n' || data[pos] == '\t' || data[pos] == '\r') {
		pos++
	}
	return pos
}
