package agent

import (
	"bytes"
	"encoding/json"
)

// comparableJSON is a JSON text that is compared with others. Its normal forms are made once,
// when a comparison needs them.
type comparableJSON struct {
	raw       []byte
	compacted bool
	compact   []byte // without spaces; nil if raw is not JSON
	canonical []byte // compact, with sorted keys and strings in one spelling
}

// maxEscaped is how many times longer a string becomes if all of its characters are escaped.
const maxEscaped = 6

// sameValue reports whether two texts are JSON of the same value. Numbers must be spelled alike.
// The cheap tests come first, since one text may be compared with many.
func (j *comparableJSON) sameValue(o *comparableJSON) bool {
	if a, b := firstByte(j.raw), firstByte(o.raw); a == 0 || a != b {
		return false
	}
	a, b := j.compactForm(), o.compactForm()
	switch {
	case a == nil || b == nil:
		return false
	case bytes.Equal(a, b):
		return true
	case len(a) > maxEscaped*len(b) || len(b) > maxEscaped*len(a):
		return false
	}
	return bytes.Equal(j.canonicalForm(), o.canonicalForm())
}

// firstByte returns the first byte of JSON, which equal values share; 0 for a blank text.
func firstByte(text []byte) byte {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return 0
	}
	return text[0]
}

func (j *comparableJSON) compactForm() []byte {
	if !j.compacted {
		j.compacted = true
		var out bytes.Buffer
		if json.Compact(&out, j.raw) == nil {
			j.compact = out.Bytes()
		}
	}
	return j.compact
}

func (j *comparableJSON) canonicalForm() []byte {
	if j.canonical != nil {
		return j.canonical
	}
	j.canonical = j.compact
	d := json.NewDecoder(bytes.NewReader(j.compact))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if out, err := json.Marshal(v); err == nil {
			j.canonical = out
		}
	}
	return j.canonical
}

func sameJSON(a, b []byte) bool { return (&comparableJSON{raw: a}).sameValue(&comparableJSON{raw: b}) }
