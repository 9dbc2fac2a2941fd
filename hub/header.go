package hub

import (
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/schema"
)

// unchecked reports whether a schema may be right although it cannot be checked here.
func unchecked(err error) bool { return errors.Is(err, schema.ErrUnsupported) }

// withoutHeaders returns a schema without marks for header fields: a tool whose marks are broken can be used all the same
// where its server does not speak HTTP, and is not offered with them.
func withoutHeaders(raw json.RawMessage) json.RawMessage {
	switch {
	case rawjson.IsObject(raw):
		out := []byte{'{'}
		for it := rawjson.Object(raw); it.Next(); {
			if string(it.Key) == "x-mcp-header" {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, raw[it.Start:it.End-len(it.Value)]...)
			out = append(out, withoutHeaders(it.Value)...)
		}
		return append(out, '}')
	case len(raw) > 0 && raw[0] == '[':
		out := []byte{'['}
		for it := rawjson.Array(raw); it.Next(); {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, withoutHeaders(it.Value)...)
		}
		return append(out, ']')
	}
	return raw
}
