package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Header fields of Streamable HTTP (basic/transports/streamable-http), in the form in which net/http keeps them.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderSessionID       = "Mcp-Session-Id"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderLastEventID     = "Last-Event-Id"
	HeaderParamPrefix     = "Mcp-Param-"
)

// CanonicalField returns the name of a header field, a token of RFC 9110, in the form in which net/http keeps it. That of
// net/textproto would link package net into every server.
func CanonicalField(name string) string {
	b := []byte(name)
	for i, c := range b {
		switch first := i == 0 || b[i-1] == '-'; {
		case first && c >= 'a' && c <= 'z':
			b[i] = c - 'a' + 'A'
		case !first && c >= 'A' && c <= 'Z':
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}

const sentinelStart, sentinelEnd = "=?base64?", "?="

// EncodeHeaderValue returns the value of a header field that mirrors s (basic/transports/streamable-http: Value Encoding):
// s itself where it is plain ASCII, else its UTF-8 in base64 between marks. What comes out is always a legal field value;
// what is not UTF-8 is refused by who decodes it.
func EncodeHeaderValue(s string) string {
	// "=?base64?=" begins and ends as marked values do, though its marks share a byte: receivers may differ on it.
	looksMarked := strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd)
	if plainValue(s) && !looksMarked && s == strings.Trim(s, " \t") {
		return s
	}
	return sentinelStart + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelEnd
}

// DecodeHeaderValue returns what a header field mirrors. ok is false for what no client may send: characters that fields
// cannot hold, base64 that is not strictly that, and text in it that is not UTF-8.
func DecodeHeaderValue(v string) (s string, ok bool) {
	if !marked(v) {
		return v, plainValue(v)
	}
	inner := v[len(sentinelStart) : len(v)-len(sentinelEnd)]
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(decoded), err == nil && utf8.Valid(decoded) && !strings.ContainsAny(inner, "\r\n") // which the decoder reads past
}

// HeaderArgument returns the text that mirrors a tool's argument, before it is encoded (basic/transports/streamable-http:
// schema extension). It goes by the type of the value and not by the declared one: what does not fit is the tool's to
// refuse, in words that a model can read. ok is false for null, arrays and objects, and for numbers that have no form:
// fractions, and what is beyond ±(2⁵³−1).
func HeaderArgument(value json.RawMessage) (text string, ok bool) {
	switch value = bytes.TrimSpace(value); value[0] {
	case '"':
		return rawjson.String(value)
	case 't', 'f':
		return string(value), true
	case '{', '[', 'n':
		return "", false
	}
	return integer(value)
}

// integer returns the decimal form of a number that is an integer, however it is written. Nothing is rounded:
// 9007199254740990.5 is no integer.
func integer(raw []byte) (string, bool) {
	const most = 1<<53 - 1
	if f, err := strconv.ParseFloat(string(raw), 64); err != nil || math.Abs(f) > most {
		return "", false
	}
	mantissa, exponent := string(raw), int64(0)
	if e := strings.IndexAny(mantissa, "eE"); e >= 0 {
		exponent, _ = strconv.ParseInt(mantissa[e+1:], 10, 32) // the nearest where it is out of range
		mantissa = mantissa[:e]
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	zeros := exponent + int64(len(digits)-len(significant)-len(fraction))
	switch {
	case significant == "":
		return "0", true
	case zeros < 0:
		return "", false
	}
	decimal := significant + strings.Repeat("0", int(zeros)) // few: the value is in range
	if raw[0] == '-' {
		decimal = "-" + decimal
	}
	return decimal, true
}

// marked reports whether a value is between the marks of base64, which take no less than their own length.
func marked(s string) bool {
	return len(s) >= len(sentinelStart)+len(sentinelEnd) && strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd)
}

// plainValue reports whether s holds visible ASCII, spaces and tabs alone.
func plainValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}
