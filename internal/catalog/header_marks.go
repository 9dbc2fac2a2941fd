package catalog

import (
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/subschema"
	"github.com/dowel-mcp/dowel/schema"
)

// isUnsupportedSchema reports whether a schema may be right although this package cannot compile
// it.
func isUnsupportedSchema(err error) bool { return errors.Is(err, schema.ErrUnsupported) }

// withoutHeaderMarks returns a schema without x-mcp-header marks. A tool with broken marks is
// offered without them: it still works if its server does not use HTTP.
func withoutHeaderMarks(raw json.RawMessage) json.RawMessage { return stripHeaderMarks(raw, false) }

// stripHeaderMarks removes the marks from a schema or an array of schemas. isMap says that raw is
// an object that maps names to schemas, so that a member called x-mcp-header is a name.
func stripHeaderMarks(raw json.RawMessage, isMap bool) json.RawMessage {
	switch {
	case rawjson.IsObject(raw):
		out := []byte{'{'}
		for it := rawjson.Object(raw); it.Next(); {
			key := string(it.Key)
			if key == "x-mcp-header" && !isMap {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, raw[it.Start:it.End-len(it.Value)]...)
			if instanceKeywords[key] && !isMap {
				out = append(out, it.Value...)
				continue
			}
			out = append(out, stripHeaderMarks(it.Value, !isMap && subschema.ShapeOf(key) == subschema.Named)...)
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

// instanceKeywords are the keywords with values that no schema rules apply to.
var instanceKeywords = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "example": true}
