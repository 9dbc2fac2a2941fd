package jsonrpc

import (
	"encoding/json"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// ID identifies a request: a string or a number. The zero ID is absent. IDs are comparable, and one read from the wire
// is written back byte for byte.
type ID struct {
	text string // raw JSON, for everything but small integers
	num  int64
	kind idKind
}

type idKind uint8

const (
	idAbsent idKind = iota
	idInt
	idRaw
)

// IntID returns the ID of an integer.
func IntID(n int64) ID { return ID{num: n, kind: idInt} }

// StringID returns the ID of a string.
func StringID(s string) ID { return ID{text: string(rawjson.AppendString(nil, s)), kind: idRaw} }

// IsZero reports whether the ID is absent.
func (id ID) IsZero() bool { return id.kind == idAbsent }

// Int returns the ID's integer, if it is one that fits.
func (id ID) Int() (n int64, ok bool) { return id.num, id.kind == idInt }

// Append appends the ID as JSON; an absent one as null.
func (id ID) Append(dst []byte) []byte {
	switch id.kind {
	case idInt:
		return strconv.AppendInt(dst, id.num, 10)
	case idRaw:
		return append(dst, id.text...)
	}
	return append(dst, "null"...)
}

// String returns the ID's JSON text.
func (id ID) String() string { return string(id.Append(nil)) }

// MarshalJSON implements [json.Marshaler].
func (id ID) MarshalJSON() ([]byte, error) { return id.Append(nil), nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (id *ID) UnmarshalJSON(raw []byte) (err error) {
	*id, err = ParseID(raw)
	return err
}

var _ json.Unmarshaler = (*ID)(nil)

// ParseID reads an ID from its JSON text. Anything but a string or a number, null included, is an error with code
// [CodeInvalidRequest].
func ParseID(raw []byte) (ID, error) {
	switch {
	case len(raw) == 0:
	case raw[0] == '"':
		return ID{text: string(raw), kind: idRaw}, nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		if n, ok := parseInt(raw); ok {
			return IntID(n), nil
		}
		return ID{text: string(raw), kind: idRaw}, nil
	}
	return ID{}, &Error{Code: CodeInvalidRequest, Message: "id must be a string or a number"}
}

// parseInt reads canonical integers only, so that writing gives back the same text.
func parseInt(raw []byte) (int64, bool) {
	digits, neg := raw, raw[0] == '-'
	if neg {
		digits = raw[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && (neg || len(digits) > 1) {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}
