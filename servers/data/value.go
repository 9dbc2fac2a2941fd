package data

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A kind is the type of a value.
type kind uint8

const (
	kindMissing kind = iota
	kindInteger
	kindNumber
	kindBoolean
	kindText
)

// A value is a cell of a table. Only the field of its kind is set.
type value struct {
	kind    kind
	integer int64 // kindInteger; 1 for true, 0 for false
	number  float64
	text    string
}

func integerValue(n int64) value { return value{kind: kindInteger, integer: n} }
func textValue(s string) value   { return value{kind: kindText, text: cleanText(s)} }

func booleanValue(b bool) value {
	v := value{kind: kindBoolean}
	if b {
		v.integer = 1
	}
	return v
}

// numberValue returns a missing value for NaN and infinities, which JSON does not have.
func numberValue(f float64) value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return value{}
	}
	return value{kind: kindNumber, number: f}
}

// parseCell returns the value of a cell of a text file.
func parseCell(cell string) value {
	if cell == "" {
		return value{}
	}
	if looksNumeric(cell) {
		if n, err := strconv.ParseInt(cell, 10, 64); err == nil {
			return integerValue(n)
		}
		if f, err := strconv.ParseFloat(cell, 64); err == nil && strings.ContainsAny(cell, ".eE") {
			return numberValue(f)
		}
	}
	return textValue(cell)
}

// looksNumeric reports whether a cell may be a decimal number. Digits behind a leading zero are an
// identifier, such as a postal code.
func looksNumeric(cell string) bool {
	digits := strings.TrimPrefix(cell, "-")
	if digits == "" || len(digits) > 32 || digits[0] < '0' || digits[0] > '9' {
		return false
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && digits[1] != 'e' && digits[1] != 'E' {
		return false
	}
	return strings.Trim(digits, "0123456789.eE+-") == ""
}

// cleanText replaces NUL and bytes that are not UTF-8.
func cleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// float returns the value as a number. ok is false if it is not a number.
func (v value) float() (f float64, ok bool) {
	switch v.kind {
	case kindInteger:
		return float64(v.integer), true
	case kindNumber:
		return v.number, true
	}
	return 0, false
}

// String returns the value as text, as a text file would hold it.
func (v value) String() string {
	switch v.kind {
	case kindInteger:
		return strconv.FormatInt(v.integer, 10)
	case kindNumber:
		return strconv.FormatFloat(v.number, 'g', -1, 64)
	case kindBoolean:
		return strconv.FormatBool(v.integer != 0)
	}
	return v.text
}

// typeName returns the type of the value for an analysis.
func (v value) typeName() string {
	switch v.kind {
	case kindInteger:
		return typeInteger
	case kindNumber:
		return typeNumber
	case kindBoolean:
		return typeBoolean
	}
	switch {
	case v.text == "true" || v.text == "false" || v.text == "True" || v.text == "False":
		return typeBoolean
	case isDate(v.text):
		return typeDate
	}
	return typeText
}

// Types of columns and values in an analysis.
const (
	typeInteger = "integer"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeDate    = "date"
	typeText    = "text"
)

// isDate reports whether s is a date or a time in ISO 8601.
func isDate(s string) bool {
	if len(s) < len(time.DateOnly) || len(s) > 40 || s[4] != '-' {
		return false
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05", time.DateTime} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

// jsonValue returns the value of raw JSON. Arrays and objects are their text.
func jsonValue(raw []byte) value {
	switch raw[0] {
	case 'n':
		return value{}
	case 't', 'f':
		return booleanValue(raw[0] == 't')
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return textValue(s)
		}
	case '{', '[':
	default:
		if v := parseCell(string(raw)); v.kind != kindText {
			return v
		}
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil {
			return numberValue(f)
		}
	}
	return textValue(string(raw))
}

// any returns the value as package json encodes it.
func (v value) any() any {
	switch v.kind {
	case kindInteger:
		return v.integer
	case kindNumber:
		return v.number
	case kindBoolean:
		return v.integer != 0
	case kindText:
		return v.text
	}
	return nil
}
