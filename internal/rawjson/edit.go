package rawjson

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendString appends s as a JSON string; invalid UTF-8 becomes U+FFFD.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error only reports replaced bytes
	return dst
}

// AppendMembers appends the members of an object without its braces, except members for which drop
// is true. It reports whether it has appended any. Members keep their bytes. If drop is nil, the
// white space between them stays too.
func AppendMembers(dst, object []byte, drop func(key []byte) bool) ([]byte, bool) {
	if drop == nil {
		return appendAllMembers(dst, object)
	}
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

func appendAllMembers(dst, object []byte) ([]byte, bool) {
	pos := Space(object, 0)
	if pos >= len(object) || object[pos] != '{' {
		return dst, false
	}
	first := Space(object, pos+1)
	if object[first] == '}' {
		return dst, false
	}
	end := len(object) - 1
	for object[end] != '}' {
		end--
	}
	return append(dst, bytes.TrimRight(object[first:end], " \t\r\n")...), true
}

// Set returns a copy of object in which the named member has the given raw value; a nil value
// removes it.
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

// Replace returns a copy of object in which the named member has another raw value, in its place;
// behind all others where it is missing.
func Replace(object []byte, name string, value []byte) []byte {
	for it := Object(object); it.Next(); {
		if string(it.Key) == name {
			return slices.Concat(object[:it.End-len(it.Value)], value, object[it.End:])
		}
	}
	return Set(object, name, value)
}
