package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// This file scans single tokens. [Check] and package schema share it: both walk objects and arrays
// themselves, because they differ in the rules (depth, duplicate names, messages).

// Space returns the offset of the first byte at or after pos that is not JSON white space.
func Space(data []byte, pos int) int {
	for pos < len(data) && data[pos] <= ' ' {
		switch data[pos] {
		case ' ', '\n', '\r', '\t':
			pos++
		default:
			return pos
		}
	}
	return pos
}

// StringContent tells whether a string literal contains escapes or characters outside ASCII.
type StringContent uint8

const (
	HasEscape   StringContent = 1 << iota // a backslash
	HasNonASCII                           // a byte from 0x80 on
)

// StringRules changes what [ScanString] accepts.
type StringRules uint8

const (
	// SkipUTF8Check accepts every byte from 0x80 on, for data that passed the check before.
	SkipUTF8Check StringRules = 1 << iota
	// RefuseLoneSurrogates refuses an escape of half a surrogate pair, as RFC 7493 demands.
	// JavaScript writes such escapes when it cuts a text in the middle of a character.
	RefuseLoneSurrogates
)

// StringFault is the first fault of a string literal.
type StringFault uint8

const (
	NoFault StringFault = iota
	Unterminated
	ControlCharacter
	InvalidUTF8
	InvalidEscape
	InvalidUnicodeEscape
	UnpairedSurrogate
)

const (
	ones  = 0x0101010101010101 // 1 in each byte
	highs = 0x8080808080808080 // the highest bit of each byte
)

// ScanString scans the string literal that begins at pos with a quote. It returns the offset after
// the literal or, if fault is not [NoFault], the offset of the fault. It looks at eight bytes at a
// time, because most characters of most strings are plain ASCII.
func ScanString(data []byte, pos int, rules StringRules) (end int, content StringContent, fault StringFault) {
	for pos++; pos < len(data); {
		if pos+8 <= len(data) {
			m := specialBytes(binary.LittleEndian.Uint64(data[pos:]))
			if m == 0 {
				pos += 8
				continue
			}
			pos += bits.TrailingZeros64(m) / 8
		}
		switch b := data[pos]; {
		case b == '"':
			return pos + 1, content, NoFault
		case b == '\\':
			content |= HasEscape
			n, fault := scanEscape(data, pos, rules)
			if fault != NoFault {
				return pos, content, fault
			}
			pos += n
		case b >= utf8.RuneSelf:
			content |= HasNonASCII
			var ok bool
			if pos, ok = scanNonASCII(data, pos, rules); !ok {
				return pos, content, InvalidUTF8
			}
		case b < ' ':
			return pos, content, ControlCharacter
		default:
			pos++
		}
	}
	return len(data), content, Unterminated
}

// specialBytes finds the first of the eight bytes of x that is a quote, a backslash, a control
// character or not ASCII: the lowest bit that is set in the result is the highest bit of that byte.
// Bits above it mean nothing, because a subtraction can borrow from the next byte. The result is 0
// if x has no such byte.
func specialBytes(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return (x | (x - ones*' ') | (quote - ones) | (slash - ones)) & highs
}

// scanNonASCII returns the offset after the non-ASCII characters at pos, or of invalid UTF-8.
func scanNonASCII(data []byte, pos int, rules StringRules) (end int, ok bool) {
	for pos < len(data) && data[pos] >= utf8.RuneSelf {
		if rules&SkipUTF8Check != 0 {
			pos++
			continue
		}
		r, n := utf8.DecodeRune(data[pos:])
		if r == utf8.RuneError && n == 1 {
			return pos, false
		}
		pos += n
	}
	return pos, true
}

// scanEscape returns the length of the escape sequence at pos. With RefuseLoneSurrogates, both
// halves of a surrogate pair are one sequence.
func scanEscape(data []byte, pos int, rules StringRules) (length int, fault StringFault) {
	if pos+1 >= len(data) {
		return 0, InvalidEscape
	}
	switch data[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, NoFault
	case 'u':
	default:
		return 0, InvalidEscape
	}
	r := parseHex(data, pos+2)
	switch {
	case r < 0:
		return 0, InvalidUnicodeEscape
	case rules&RefuseLoneSurrogates == 0 || r < 0xD800 || r > 0xDFFF:
		return 6, NoFault
	case r >= 0xDC00 || pos+8 > len(data) || data[pos+6] != '\\' || data[pos+7] != 'u':
		return 0, UnpairedSurrogate
	}
	if low := parseHex(data, pos+8); low < 0xDC00 || low > 0xDFFF {
		return 0, UnpairedSurrogate
	}
	return 12, NoFault
}

// parseHex returns the value of the four hexadecimal digits at pos, or -1.
func parseHex(data []byte, pos int) rune {
	if pos+4 > len(data) {
		return -1
	}
	var r rune
	for _, b := range data[pos : pos+4] {
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

// ScanNumber scans the number that begins at pos with a digit or a minus sign. It returns the
// offset after the number or, if ok is false, the offset of the fault. isInteger reports whether
// the number has neither a fraction nor an exponent. A leading zero ends the number: for 01, end is
// 1.
func ScanNumber(data []byte, pos int) (end int, isInteger, ok bool) {
	if pos < len(data) && data[pos] == '-' {
		pos++
	}
	start := pos
	if pos < len(data) && data[pos] == '0' {
		pos++
	} else if pos = skipDigits(data, pos); pos == start {
		return pos, false, false
	}
	isInteger = true
	if pos < len(data) && data[pos] == '.' {
		start = pos + 1
		if pos = skipDigits(data, start); pos == start {
			return pos, false, false
		}
		isInteger = false
	}
	if pos < len(data) && data[pos]|0x20 == 'e' {
		pos++
		if pos < len(data) && (data[pos] == '+' || data[pos] == '-') {
			pos++
		}
		start = pos
		if pos = skipDigits(data, pos); pos == start {
			return pos, false, false
		}
		isInteger = false
	}
	return pos, isInteger, true
}

func skipDigits(data []byte, pos int) int {
	for pos < len(data) && data[pos]-'0' <= 9 {
		pos++
	}
	return pos
}
