// Package rawjson reads and edits JSON as bytes: it checks bytes once, finds members of an object,
// and changes one member without decoding the others. All other bytes stay as they are, so unknown
// members and the notation of numbers survive.
//
// [Check] is for bytes from outside. [Object], [Array], [Lookup] and the editing functions require
// bytes that passed it. [ScanString] and [ScanNumber] are the parts that package schema shares.
package rawjson

import (
	"errors"
	"fmt"
)

// MaxDepth bounds the nesting that [Check] accepts. It is higher than the limits of single items,
// so that one deep item of a list does not make the whole message unreadable.
const MaxDepth = 1000

// ErrDepth is wrapped by the error for a value nested deeper than [MaxDepth].
var ErrDepth = errors.New("nested too deeply")

// ErrNoObject is the error for JSON that must be an object and is another value.
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

func newSyntaxError(at int, reason string) (int, error) {
	return 0, &SyntaxError{Offset: at, Reason: reason}
}

// Check verifies that data, from pos on, starts with one JSON value (RFC 8259, valid UTF-8, at most
// [MaxDepth] levels) and returns the offset behind it. Names that occur twice in one object are not
// looked for.
func Check(data []byte, pos int) (int, error) { return checkValue(data, pos, 0) }

// CheckAll is [Check] for data that must hold one value and white space, nothing else.
func CheckAll(data []byte) error {
	end, err := Check(data, Space(data, 0))
	if err != nil {
		return err
	}
	if end = Space(data, end); end != len(data) {
		_, err = newSyntaxError(end, "something follows the value")
	}
	return err
}

// CheckObject is [CheckAll] for data that must hold an object: member is called for each of its
// members, in order. The error for another value is [ErrNoObject].
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
		_, err = newSyntaxError(end, "something follows the value")
	}
	return err
}

func checkValue(data []byte, pos, depth int) (int, error) {
	if pos >= len(data) {
		return newSyntaxError(pos, "the input ends here")
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
	return newSyntaxError(pos, fmt.Sprintf("%q starts no value", data[pos]))
}

func checkWord(data []byte, pos int, word string) (int, error) {
	if end := pos + len(word); end <= len(data) && string(data[pos:end]) == word {
		return end, nil
	}
	return newSyntaxError(pos, "expected "+word)
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
			return newSyntaxError(pos, "expected a member name")
		}
		end, err := checkString(data, pos)
		if err != nil {
			return 0, err
		}
		key := data[pos:end]
		pos = Space(data, end)
		if pos >= len(data) || data[pos] != ':' {
			return newSyntaxError(pos, "expected ':'")
		}
		pos = Space(data, pos+1)
		if end, err = checkValue(data, pos, depth); err != nil {
			return 0, err
		}
		if member != nil {
			member(decodeName(key), data[pos:end])
		}
		pos = Space(data, end)
		if pos < len(data) && data[pos] == '}' {
			return pos + 1, nil
		}
		if pos >= len(data) || data[pos] != ',' {
			return newSyntaxError(pos, "expected ',' or '}'")
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
		end, err := checkValue(data, pos, depth)
		if err != nil {
			return 0, err
		}
		pos = Space(data, end)
		if pos < len(data) && data[pos] == ']' {
			return pos + 1, nil
		}
		if pos >= len(data) || data[pos] != ',' {
			return newSyntaxError(pos, "expected ',' or ']'")
		}
		pos = Space(data, pos+1)
	}
}

func checkNumber(data []byte, pos int) (int, error) {
	end, _, ok := ScanNumber(data, pos)
	if !ok || end < len(data) && data[end]-'0' <= 9 {
		return newSyntaxError(pos, "malformed number")
	}
	return end, nil
}

func checkString(data []byte, pos int) (int, error) {
	end, _, fault := ScanString(data, pos, 0)
	if fault != NoFault {
		return stringError(pos, end, fault)
	}
	return end, nil
}

// stringError is the error for the fault at end of the string that begins at start.
func stringError(start, end int, fault StringFault) (int, error) {
	switch fault {
	case Unterminated:
		return newSyntaxError(start, "the string does not end")
	case ControlCharacter:
		return newSyntaxError(end, "control character in a string")
	case InvalidUTF8:
		return newSyntaxError(end, "invalid UTF-8")
	}
	return newSyntaxError(end, "malformed escape")
}
