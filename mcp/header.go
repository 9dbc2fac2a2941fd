package mcp

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
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
