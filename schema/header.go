package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Header is a tool parameter that is mirrored into the HTTP header
// Mcp-Param-{Name}.
type Header struct {
	Name string
	Path []string // the names of the properties that lead to the parameter
	Type string   // "string", "integer" or "boolean"
}

// Headers lists the parameters that a tool's input schema marks by x-mcp-header, in their order.
// The error names the first mark that breaks the rules: a name that is not an HTTP token or that
// another property has in any case, a type other than string, integer and boolean, or a place that
// cannot be reached through properties alone. Such an error makes the whole tool definition
// invalid.
func Headers(raw json.RawMessage) ([]Header, error) {
	root, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return root.listHeaders()
}

// Headers is the function [Headers] for this schema.
func (s *Schema) Headers() ([]Header, error) { return s.tree.listHeaders() }

func (t *tree) listHeaders() ([]Header, error) {
	w := &headerWalk{taken: make(map[string]string)}
	if err := w.walkReachable(t, nil); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return w.headers, nil
}

const headerKeyword = "x-mcp-header"

type headerWalk struct {
	headers []Header
	taken   map[string]string // lower-case name → where
}

// walkReachable looks at a schema that is reached through properties alone.
func (w *headerWalk) walkReachable(t *tree, path []string) error {
	if t.kind != '{' {
		return nil
	}
	for _, m := range t.members {
		switch {
		case m.name == headerKeyword:
			if err := w.addHeader(t, m.value, path); err != nil {
				return fmt.Errorf("%s of %s: %w", headerKeyword, pathName(path), err)
			}
		case m.name == "properties" && m.value.kind == '{':
			for _, p := range m.value.members {
				if err := w.walkReachable(p.value, append(path[:len(path):len(path)], p.name)); err != nil {
					return err
				}
			}
		case subschemaShape(m.name) != 0:
			if hidesHeader(m) {
				return fmt.Errorf("%s below %s of %s: only properties that are reached through properties alone can be headers", headerKeyword, m.name, pathName(path))
			}
		}
	}
	return nil
}

func pathName(path []string) string { return quoteText([]byte(strings.Join(path, "."))) }

func (w *headerWalk) addHeader(t, name *tree, path []string) error {
	if len(path) == 0 {
		return fmt.Errorf("the arguments themselves cannot be a header")
	}
	if name.kind != '"' || !isToken(name.text) {
		return fmt.Errorf("%s is not an HTTP field name", clipText(string(name.raw)))
	}
	kind := ""
	if typ := t.getMember("type"); typ != nil {
		kind = typ.text
	}
	if kind != "string" && kind != "integer" && kind != "boolean" {
		return fmt.Errorf("the type must be string, integer or boolean")
	}
	lower := strings.ToLower(name.text)
	if other, ok := w.taken[lower]; ok {
		return fmt.Errorf("the name %s is also that of %s", name.raw, other)
	}
	w.taken[lower] = pathName(path)
	w.headers = append(w.headers, Header{Name: name.text, Path: path, Type: kind})
	return nil
}

// hidesHeader reports whether there is a mark in the subschemas of a keyword.
func hidesHeader(m member) bool {
	for _, sub := range m.listSubschemas() {
		if sub.getMember(headerKeyword) != nil || slices.ContainsFunc(sub.members, hidesHeader) {
			return true
		}
	}
	return false
}

// isToken reports whether name is a token of RFC 9110.
func isToken(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0:
		default:
			return false
		}
	}
	return name != ""
}
