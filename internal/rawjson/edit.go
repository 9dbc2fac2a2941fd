package rawjson

import "github.com/go-json-experiment/json/jsontext"

// AppendString appends s as a JSON string; invalid UTF-8 becomes U+FFFD.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error only reports replaced bytes
	return dst
}

// AppendMembers appends the members of an object (without its braces) except those that drop names, and reports
// whether there were any. Their bytes stay as they are.
func AppendMembers(dst, object []byte, drop func(key []byte) bool) ([]byte, bool) {
	any := false
	for it := Object(object); it.Next(); {
		if drop != nil && drop(it.Key) {
			continue
		}
		if any {
			dst = append(dst, ',')
		}
		dst = append(dst, object[it.Start:it.End]...)
		any = true
	}
	return dst, any
}

// Set returns a copy of object in which the named member has the given raw value; a nil value removes it.
func Set(object []byte, name string, value []byte) []byte {
	out := make([]byte, 0, len(object)+len(name)+len(value)+4)
	out, any := AppendMembers(append(out, '{'), object, func(key []byte) bool { return string(key) == name })
	if value == nil {
		return append(out, '}')
	}
	if any {
		out = append(out, ',')
	}
	out = append(AppendString(out, name), ':')
	return append(append(out, value...), '}')
}
