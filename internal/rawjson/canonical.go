package rawjson

import (
	"bytes"
	"slices"
	"strconv"
)

// AppendCanonical appends a checked JSON value in the form that all encodings of the value share:
// without white space, with members sorted by name, each string with one set of escapes, and
// numbers as [CanonicalNumber] writes them. Members of the same name keep their order. Numbers
// never become float64, so numbers that differ in any digit stay different.
func AppendCanonical(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case '{':
		return appendCanonicalMembers(dst, raw)
	case '[':
		dst = append(dst, '[')
		for it, first := Array(raw), true; it.Next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, it.Value)
		}
		return append(dst, ']')
	case '"':
		s, _ := String(raw)
		return AppendString(dst, s)
	}
	if number, ok := CanonicalNumber(raw); ok {
		return append(dst, number...)
	}
	return append(dst, raw...)
}

func appendCanonicalMembers(dst, raw []byte) []byte {
	type member struct{ key, value []byte }
	var members []member
	for it := Object(raw); it.Next(); {
		members = append(members, member{it.Key, it.Value})
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, m.key), ':')
		dst = AppendCanonical(dst, m.value)
	}
	return append(dst, '}')
}

// CanonicalNumber returns the digits of a JSON number without zeros at either end, and its power of
// ten: 1200, 1.2e3 and 1200.0 are all 12e2. ok is false if raw is not a number, or if its exponent
// does not fit an int32.
func CanonicalNumber(raw []byte) (canonical []byte, ok bool) {
	if len(raw) == 0 || !startsNumber(raw) || CheckAll(raw) != nil {
		return nil, false
	}
	mantissa, exponent := raw, 0
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		n, err := strconv.ParseInt(string(raw[e+1:]), 10, 32)
		if err != nil {
			return nil, false
		}
		mantissa, exponent = raw[:e], int(n)
	}
	whole, fraction, _ := bytes.Cut(bytes.TrimPrefix(mantissa, []byte("-")), []byte("."))
	digits := append(slices.Clone(whole), fraction...)
	exponent -= len(fraction)
	trimmed := bytes.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed = bytes.TrimLeft(trimmed, "0"); len(trimmed) == 0 {
		return []byte("0"), true
	}
	if raw[0] == '-' {
		canonical = append(canonical, '-')
	}
	canonical = append(append(canonical, trimmed...), 'e')
	return strconv.AppendInt(canonical, int64(exponent), 10), true
}

func startsNumber(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }
