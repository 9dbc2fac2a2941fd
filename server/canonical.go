package server

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// appendCanonical appends a valid JSON value in canonical form: no white space, members sorted by
// name, strings escaped in one way, numbers by their exact value. Equal values have equal forms.
// Numbers are not converted to float64, so two numbers that differ in any digit stay different.
func appendCanonical(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case '{':
		return appendCanonicalObject(dst, raw)
	case '[':
		dst = append(dst, '[')
		for it, first := rawjson.Array(raw), true; it.Next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, it.Value)
		}
		return append(dst, ']')
	case '"':
		s, _ := rawjson.String(raw)
		return rawjson.AppendString(dst, s)
	}
	if number, ok := canonicalNumber(raw); ok {
		return append(dst, number...)
	}
	return append(dst, raw...)
}

func appendCanonicalObject(dst, raw []byte) []byte {
	type member struct{ key, value []byte }
	var members []member
	for it := rawjson.Object(raw); it.Next(); {
		members = append(members, member{it.Key, it.Value})
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendString(dst, m.key), ':')
		dst = appendCanonical(dst, m.value)
	}
	return append(dst, '}')
}

// canonicalNumber returns the digits of a JSON number without leading and trailing zeros, and its
// power of ten: 1200, 1.2e3 and 1200.0 all become 12e2. ok is false if raw is not a number, or if
// its exponent does not fit an int32.
func canonicalNumber(raw []byte) (canonical []byte, ok bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || rawjson.CheckAll(raw) != nil {
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
