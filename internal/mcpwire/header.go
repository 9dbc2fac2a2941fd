package mcpwire

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

// Header fields of Streamable HTTP (basic/transports/streamable-http), in net/http's canonical
// form.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderSessionID       = "Mcp-Session-Id"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderLastEventID     = "Last-Event-Id"
	HeaderParamPrefix     = "Mcp-Param-"
)

// CanonicalField returns the name of a header field, a token of RFC 9110, in net/http's canonical
// form. It replaces the function of net/textproto, which would link package net into every server.
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

// EncodeHeaderValue returns the header value that mirrors s (basic/transports/streamable-http:
// Value Encoding): s itself if it is plain ASCII, else its UTF-8 in base64 between markers. The
// result is always a legal field value. Decoding fails if s is not UTF-8.
func EncodeHeaderValue(s string) string {
	// "=?base64?=" has both markers, but they share a byte: receivers may disagree about it.
	looksMarked := strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd)
	if isPlainValue(s) && !looksMarked && s == strings.Trim(s, " \t") {
		return s
	}
	return sentinelStart + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelEnd
}

// DecodeHeaderValue returns the text that a header value mirrors. ok is false for values that no
// client may send: illegal characters, malformed base64, and base64 of text that is not UTF-8.
func DecodeHeaderValue(v string) (s string, ok bool) {
	if !isMarked(v) {
		return v, isPlainValue(v)
	}
	inner := v[len(sentinelStart) : len(v)-len(sentinelEnd)]
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(decoded), err == nil && utf8.Valid(decoded) && !strings.ContainsAny(inner, "\r\n") // the decoder ignores line ends
}

// HeaderArgument returns the text that mirrors a tool's argument, before it is encoded
// (basic/transports/streamable-http: schema extension). It uses the value's type, not the declared
// type; the tool's validation refuses a wrong type with a message for the model. ok is false for
// null, arrays, objects, fractions, and numbers beyond ±(2⁵³−1), which cannot be mirrored.
func HeaderArgument(value json.RawMessage) (text string, ok bool) {
	switch value = bytes.TrimSpace(value); value[0] {
	case '"':
		return rawjson.String(value)
	case 't', 'f':
		return string(value), true
	case '{', '[', 'n':
		return "", false
	}
	return formatInteger(value)
}

// formatInteger returns the decimal form of an integer in any JSON notation. It does not round:
// 9007199254740990.5 is not an integer.
func formatInteger(raw []byte) (string, bool) {
	const most = 1<<53 - 1
	if f, err := strconv.ParseFloat(string(raw), 64); err != nil || math.Abs(f) > most {
		return "", false
	}
	mantissa, exponent := string(raw), int64(0)
	if e := strings.IndexAny(mantissa, "eE"); e >= 0 {
		exponent, _ = strconv.ParseInt(mantissa[e+1:], 10, 32) // out of range gives the nearest limit
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
	decimal := significant + strings.Repeat("0", int(zeros)) // at most 16, since the value is in range
	if raw[0] == '-' {
		decimal = "-" + decimal
	}
	return decimal, true
}

// isMarked reports whether a value is between the base64 markers.
func isMarked(s string) bool {
	return len(s) >= len(sentinelStart)+len(sentinelEnd) && strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd)
}

// isPlainValue reports whether s holds only visible ASCII, spaces and tabs.
func isPlainValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}
