// Package toolheader finds the arguments of a tool that clients mirror into HTTP header fields
// (server/tools: x-mcp-header).
package toolheader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/subschema"
	"github.com/go-json-experiment/json/jsontext"
)

// Header is an argument that is mirrored into the header field Mcp-Param-{Name}.
type Header struct {
	Name string
	Path []string // the names of the properties that lead to the argument
}

// Lookup returns the raw value of the argument, or nil if the arguments lack it.
func (h Header) Lookup(arguments json.RawMessage) json.RawMessage {
	value := []byte(arguments)
	for _, name := range h.Path {
		if value = rawjson.Lookup(value, name); value == nil {
			return nil
		}
	}
	return value
}

// List lists the arguments that a tool's input schema marks by x-mcp-header, in their order. The
// error names the first mark that breaks the rules: a name that is not an HTTP token or that
// another property has in any case, a type other than string, integer and boolean, or a place that
// cannot be reached through properties alone. An error makes the whole tool definition invalid.
func List(schema json.RawMessage) ([]Header, error) {
	if !jsontext.Value(schema).IsValid() {
		return nil, errors.New("malformed JSON, or two members of one name")
	}
	if depth := rawjson.Depth(schema); depth > maxDepth {
		return nil, fmt.Errorf("nested %d levels deep, more than %d", depth, maxDepth)
	}
	if !mayHoldKeyword(schema) {
		return nil, nil
	}
	w := &schemaWalk{taken: make(map[string]string)}
	if err := w.walkReachable(schema, nil); err != nil {
		return nil, err
	}
	return w.headers, nil
}

const keyword = "x-mcp-header"

// mayHoldKeyword reports whether the keyword may be in a schema: it is written out, or there is an
// escape. Other schemas need no walk.
func mayHoldKeyword(schema []byte) bool {
	return bytes.Contains(schema, []byte(keyword)) || bytes.IndexByte(schema, '\\') >= 0
}

// maxDepth limits the nesting of a schema. The walk reads each byte once per level above it, so a
// large and deep schema would be slow.
const maxDepth = 128

// schemaWalk collects the marked arguments of a schema.
type schemaWalk struct {
	headers []Header
	taken   map[string]string // lower-case name → where
}

// walkReachable looks at a schema that is reached through properties alone.
func (w *schemaWalk) walkReachable(schema []byte, path []string) error {
	for it := rawjson.Object(schema); it.Next(); {
		switch name := string(it.Key); {
		case name == keyword:
			if err := w.addHeader(schema, it.Value, path); err != nil {
				return fmt.Errorf("%s of %s: %w", keyword, pathName(path), err)
			}
		case name == "properties" && rawjson.IsObject(it.Value):
			for p := rawjson.Object(it.Value); p.Next(); {
				if err := w.walkReachable(p.Value, append(path[:len(path):len(path)], string(p.Key))); err != nil {
					return err
				}
			}
		case hidesHeader(name, it.Value):
			return fmt.Errorf("%s below %s of %s: only properties that are reached through properties alone can be headers", keyword, name, pathName(path))
		}
	}
	return nil
}

// pathName quotes a path for a message.
func pathName(path []string) string { return clipText(strconv.Quote(strings.Join(path, "."))) }

func clipText(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}

func (w *schemaWalk) addHeader(schema, mark []byte, path []string) error {
	if len(path) == 0 {
		return errors.New("the arguments themselves cannot be a header")
	}
	name, ok := rawjson.String(mark)
	if !ok || !IsName(name) {
		return fmt.Errorf("%s is not an HTTP field name", clipText(string(mark)))
	}
	switch kind, _ := rawjson.String(rawjson.Lookup(schema, "type")); kind {
	case "string", "integer", "boolean":
	default:
		return errors.New("the type must be string, integer or boolean")
	}
	lower := strings.ToLower(name)
	if other, ok := w.taken[lower]; ok {
		return fmt.Errorf("the name %s is also that of %s", mark, other)
	}
	w.taken[lower] = pathName(path)
	w.headers = append(w.headers, Header{Name: name, Path: path})
	return nil
}

// hidesHeader reports whether there is a mark in the subschemas of a keyword.
func hidesHeader(name string, value []byte) bool {
	shape := subschema.ShapeOf(name)
	switch {
	case len(value) > 0 && value[0] == '[' && shape&subschema.Listed != 0:
		for it := rawjson.Array(value); it.Next(); {
			if hasHeader(it.Value) {
				return true
			}
		}
	case shape&subschema.Single != 0:
		return hasHeader(value)
	case shape&subschema.Named != 0:
		for it := rawjson.Object(value); it.Next(); {
			if hasHeader(it.Value) {
				return true
			}
		}
	}
	return false
}

// hasHeader reports whether there is a mark in a schema or in its subschemas.
func hasHeader(schema []byte) bool {
	for it := rawjson.Object(schema); it.Next(); {
		if name := string(it.Key); name == keyword || hidesHeader(name, it.Value) {
			return true
		}
	}
	return false
}

// IsName reports whether name is a token of RFC 9110.
func IsName(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0:
		default:
			return false
		}
	}
	return name != ""
}
