package agent

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// jsonText is JSON that is compared with others. What that takes is made once, when it is needed.
type jsonText struct {
	raw     []byte
	read    bool
	compact []byte // without spaces; nil where it is no JSON
	ordered []byte // in the canonical form of rawjson
}

// maxEscaped is how many times as long a string may be that is the same, with all its characters escaped.
const maxEscaped = 6

// same reports whether two texts are JSON of the same value. Numbers are compared by value.
func (j *jsonText) same(o *jsonText) bool {
	// All that is not worth reading is seen by these, as one may be compared with many.
	if a, b := first(j.raw), first(o.raw); a == 0 || a != b {
		return false
	}
	a, b := j.withoutSpaces(), o.withoutSpaces()
	switch {
	case a == nil || b == nil:
		return false
	case bytes.Equal(a, b):
		return true
	case len(a) > maxEscaped*len(b) || len(b) > maxEscaped*len(a):
		return false
	}
	return bytes.Equal(j.inOrder(), o.inOrder())
}

// first is the byte that JSON begins with, which is the same for the same values; 0 where there is none.
func first(text []byte) byte {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return 0
	}
	return text[0]
}

func (j *jsonText) withoutSpaces() []byte {
	if !j.read {
		j.read = true
		var out bytes.Buffer
		if json.Compact(&out, j.raw) == nil {
			j.compact = out.Bytes()
		}
	}
	return j.compact
}

func (j *jsonText) inOrder() []byte {
	if j.ordered != nil {
		return j.ordered
	}
	j.ordered = rawjson.AppendCanonical(nil, j.compact)
	return j.ordered
}

func sameJSON(a, b []byte) bool { return (&jsonText{raw: a}).same(&jsonText{raw: b}) }
