package schema

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"strconv"
)

// decimal is a JSON number, read without rounding and without allocating:
// 0.d₁d₂d₃… × 10^point, where d₁ and the last digit are not zero. digits may
// hold the decimal point of the text, which counts for nothing.
type decimal struct {
	negative bool
	digits   []byte // empty for zero
	point    int64
}

// hugeExponent replaces every larger exponent. Two numbers that differ only in exponents beyond it
// compare as equal.
const hugeExponent = 1 << 60

func parseDecimal(text []byte) decimal {
	var d decimal
	if text[0] == '-' {
		d.negative, text = true, text[1:]
	}
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		d.point = parseExponent(text[i+1:])
		text = text[:i]
	}
	dot := bytes.IndexByte(text, '.')
	if dot < 0 {
		dot = len(text)
	}
	first := bytes.IndexAny(text, "123456789")
	if first < 0 {
		return decimal{}
	}
	d.point += int64(dot - first)
	if first > dot {
		d.point++ // the point itself lies between
	}
	d.digits = bytes.TrimRight(text[first:], "0.")
	if dot == len(text) { // "100": only zeros were trimmed
		d.digits = bytes.TrimRight(text[first:], "0")
	}
	return d
}

func parseExponent(text []byte) int64 {
	e, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || e > hugeExponent || e < -hugeExponent {
		if text[0] == '-' {
			return -hugeExponent
		}
		return hugeExponent
	}
	return e
}

// isInteger reports whether the number is one mathematically: 1.0 and 1e3 are.
func (d decimal) isInteger() bool {
	n := len(d.digits)
	if bytes.IndexByte(d.digits, '.') >= 0 {
		n--
	}
	return n == 0 || int64(n) <= d.point
}

func (d decimal) compareTo(e decimal) int {
	if len(d.digits) == 0 || len(e.digits) == 0 || d.negative != e.negative {
		return cmp.Compare(d.sign(), e.sign())
	}
	if d.negative {
		d, e = e, d
	}
	if d.point != e.point {
		return cmp.Compare(d.point, e.point)
	}
	return compareDigits(d.digits, e.digits)
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func compareDigits(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == '.':
			a = a[1:]
		case b[0] == '.':
			b = b[1:]
		case a[0] != b[0]:
			return cmp.Compare(a[0], b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return cmp.Compare(len(a), len(b))
}

// smallInt is the value of a plain integer text of at most 18 digits.
func smallInt(text []byte) (v int64, ok bool) {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) > 18 {
		return 0, false
	}
	for _, b := range digits {
		if b-'0' > 9 {
			return 0, false
		}
		v = v*10 + int64(b-'0')
	}
	if len(digits) < len(text) {
		v = -v
	}
	return v, true
}

// number is a constant of a schema, to compare values with.
type number struct {
	text    string
	decimal decimal
	small   int64
	isSmall bool
}

func newNumber(text []byte) *number {
	n := &number{text: string(text), decimal: parseDecimal(text)}
	n.small, n.isSmall = smallInt(text)
	return n
}

// compareText is negative where the number in text is below n.
func (n *number) compareText(text []byte) int {
	if n.isSmall {
		if v, ok := smallInt(text); ok {
			return cmp.Compare(v, n.small)
		}
	}
	return parseDecimal(text).compareTo(n.decimal)
}

// dividesText reports whether the number in text is a multiple of n. ok is false
// where that would cost too much to find out.
func (n *number) dividesText(text []byte) (yes, ok bool) {
	if n.isSmall {
		if v, ok := smallInt(text); ok {
			return v%n.small == 0, true
		}
	}
	d := parseDecimal(text)
	if len(d.digits) == 0 {
		return true, true
	}
	if len(d.digits) > maxExponent || max(d.point, -d.point) > maxExponent {
		return false, false
	}
	value, _ := new(big.Rat).SetString(string(text))
	unit, _ := new(big.Rat).SetString(n.text)
	return value.Quo(value, unit).IsInt(), true
}

// asLength returns the value of a keyword such as minLength. ok is false unless the number is a
// whole number from 0 up. A number too large for an int becomes the largest int.
func (n *number) asLength() (int, bool) {
	d := n.decimal
	switch {
	case d.negative || !d.isInteger():
		return 0, false
	case n.isSmall:
		return int(min(n.small, math.MaxInt)), true
	case d.point > 18:
		return math.MaxInt, true
	}
	rat, _ := new(big.Rat).SetString(n.text)
	return int(min(rat.Num().Int64(), math.MaxInt)), true
}
