package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// skipValue returns the offset behind the value at pos of checked bytes.
func skipValue(data []byte, pos int) int {
	switch data[pos] {
	case '"':
		return skipString(data, pos)
	case '{', '[':
		return skipNested(data, pos)
	}
	for pos < len(data) {
		switch data[pos] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return pos
		}
		pos++
	}
	return pos
}

func skipString(data []byte, pos int) int {
	end, _ := scanString(data, pos)
	return end
}

// scanString returns the offset behind the string at pos of checked bytes, and whether it holds an
// escape.
func scanString(data []byte, pos int) (end int, escaped bool) {
	const short = 64 // bytes in which eight at a time are quicker than a call
	pos++
	for limit := min(pos+short, len(data)-8); pos <= limit; {
		w := binary.LittleEndian.Uint64(data[pos:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		special := ((quote-ones) & ^quote | (slash-ones) & ^slash) & highs
		if special == 0 {
			pos += 8
			continue
		}
		pos += bits.TrailingZeros64(special) / 8
		if data[pos] == '"' {
			return pos + 1, escaped
		}
		escaped = true
		pos += 2
	}
	return scanLong(data, pos, escaped)
}

func scanLong(data []byte, pos int, escaped bool) (int, bool) {
	for {
		next := bytes.IndexByte(data[pos:], '"')
		if next < 0 {
			return len(data), escaped
		}
		end := pos + next
		back := end
		for back > pos && data[back-1] == '\\' {
			back--
		}
		escaped = escaped || end > pos && bytes.IndexByte(data[pos:end], '\\') >= 0
		pos = end + 1
		if (end-back)%2 == 0 {
			return pos, escaped
		}
	}
}

func skipNested(data []byte, pos int) int {
	depth := 0
	for pos < len(data) {
		switch data[pos] {
		case '"':
			pos = skipString(data, pos)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
		pos++
	}
	return pos
}

// Iterator walks the members of an object or the elements of an array of checked bytes, without
// allocating.
//
//	for it := rawjson.Object(raw); it.Next(); {
//		use(it.Key, it.Value)
//	}
type Iterator struct {
	Key   []byte // the member's name, unescaped; nil in an array
	Value []byte // the raw value, aliasing the input
	// Start and End are the offsets of the member (its name included) or element in the input.
	Start, End int

	data   []byte
	pos    int
	object bool
}

// Object iterates over the members of raw. If raw is not an object, it yields nothing.
func Object(raw []byte) Iterator { return newIterator(raw, '{') }

// ObjectFrom iterates over the members of an object from the offset on at which a member has ended.
func ObjectFrom(raw []byte, offset int) Iterator {
	return Iterator{data: raw, pos: offset, object: true}
}

// Params iterates over the members of a request's params, without the _meta that was found in them
// where that comes first, as it mostly does.
func Params(params, meta []byte) Iterator {
	const first = `{"_meta":`
	if n := len(first); len(meta) > 0 && len(params) > n && &params[n] == &meta[0] {
		return ObjectFrom(params, n+len(meta))
	}
	return Object(params)
}

// Array iterates over the elements of raw. If raw is not an array, it yields nothing.
func Array(raw []byte) Iterator { return newIterator(raw, '[') }

func newIterator(raw []byte, open byte) Iterator {
	pos := Space(raw, 0)
	if pos >= len(raw) || raw[pos] != open {
		return Iterator{pos: len(raw)}
	}
	return Iterator{data: raw, pos: pos + 1, object: open == '{'}
}

// Next moves to the next member or element and reports whether there is one.
func (it *Iterator) Next() bool {
	pos := Space(it.data, it.pos)
	if pos < len(it.data) && it.data[pos] == ',' {
		pos = Space(it.data, pos+1)
	}
	if pos >= len(it.data) || it.data[pos] == '}' || it.data[pos] == ']' {
		it.pos = len(it.data)
		return false
	}
	it.Start = pos
	if it.object {
		end, escaped := scanString(it.data, pos)
		it.Key = it.data[pos+1 : end-1]
		if escaped {
			it.Key = decodeName(it.data[pos:end])
		}
		pos = Space(it.data, Space(it.data, end)+1)
	}
	it.End = skipValue(it.data, pos)
	it.Value = it.data[pos:it.End]
	it.pos = it.End
	return true
}

func decodeName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	plain, _ := jsontext.AppendUnquote(nil, quoted) // as in String
	return plain
}

// Lookup returns the raw value of the first member of this name, or nil if object has none or is
// not an object.
func Lookup(object []byte, name string) []byte {
	for it := Object(object); it.Next(); {
		if string(it.Key) == name {
			return it.Value
		}
	}
	return nil
}

// String decodes a raw JSON string. ok is false if raw is not a string. Half a surrogate pair,
// which JavaScript writes when it cuts a text, becomes U+FFFD.
func String(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	b, _ := jsontext.AppendUnquote(nil, raw) // the error only reports surrogates: raw has been checked
	return string(b), true
}

// Is reports whether raw is the JSON string s. It decodes raw only if it has escapes.
func Is(raw []byte, s string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return len(raw) == len(s)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == s
	}
	text, ok := String(raw)
	return ok && text == s
}

// IsObject reports whether raw holds an object.
func IsObject(raw []byte) bool {
	pos := Space(raw, 0)
	return pos < len(raw) && raw[pos] == '{'
}

// IsNull reports whether raw holds null.
func IsNull(raw []byte) bool {
	return string(bytes.TrimSpace(raw)) == "null"
}
