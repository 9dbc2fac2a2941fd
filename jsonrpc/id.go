package jsonrpc

import "strconv"

// ID identifies a request: a string or a number. The zero ID means that the id is absent. IDs can
// be compared with ==. An ID that was read from a message is written back byte for byte.
type ID struct {
	text string // raw JSON, unless the id is a small integer
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

// IsZero reports whether the ID is absent.
func (id ID) IsZero() bool { return id.kind == idAbsent }

// Int returns the ID as an integer. ok is false for strings and for numbers that are not small
// integers.
func (id ID) Int() (n int64, ok bool) { return id.num, id.kind == idInt }

// Append appends the ID as JSON to dst; a zero ID as null.
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

// ParseID parses the JSON of an ID, which must be a string or a number. The error has the code
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

// parseInt parses canonical integers only, so that formatting gives the same text.
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
