package hub

import (
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/schema"
)

// isUnsupportedSchema reports whether a schema may be right although it cannot be checked here.
func isUnsupportedSchema(err error) bool { return errors.Is(err, schema.ErrUnsupported) }

// withoutHeaderMarks returns a schema without marks for header fields: a tool whose marks are broken can be used all the same
// where its server does not speak HTTP, and is not offered with them.
func withoutHeaderMarks(raw json.RawMessage) json.RawMessage { return stripHeaderMarks(raw, false) }

// stripHeaderMarks is withoutHeaders of a schema, of an array of them, or, with names, of an object that holds them by names of its own.
func stripHeaderMarks(raw json.RawMessage, names bool) json.RawMessage {
	switch {
	case rawjson.IsObject(raw):
		out := []byte{'{'}
		for it := rawjson.Object(raw); it.Next(); {
			key := string(it.Key)
			if key == "x-mcp-header" && !names {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, raw[it.Start:it.End-len(it.Value)]...)
			if instanceKeywords[key] && !names {
				out = append(out, it.Value...)
				continue
			}
			out = append(out, stripHeaderMarks(it.Value, schemaMapKeywords[key] && !names)...)
		}
		return append(out, '}')
	case len(raw) > 0 && raw[0] == '[':
		out := []byte{'['}
		for it := rawjson.Array(raw); it.Next(); {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, stripHeaderMarks(it.Value, false)...)
		}
		return append(out, ']')
	}
	return raw
}

// schemaMapKeywords are the keywords whose values hold schemas by names, and values those whose values are no schemas.
var (
	schemaMapKeywords = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}
	instanceKeywords  = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "example": true}
)
