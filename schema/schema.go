package schema

import (
	"encoding/json"
	"fmt"
)

// Schema is a compiled JSON Schema. It never changes, and may be used concurrently.
type Schema struct {
	raw  json.RawMessage
	tree *tree
	root *node
}

// Compile compiles a schema. The bytes are copied. Errors that wrap [ErrUnsupported] mean that the
// schema may be right but that this package cannot check it.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("schema: %w: it has %d bytes, more than %d", ErrUnsupported, len(raw), maxSchemaBytes)
	}
	s, err := compile(append(json.RawMessage(nil), raw...))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// compile compiles raw and keeps it.
func compile(raw json.RawMessage) (*Schema, error) {
	t, err := parseTree(raw)
	if syntax, ok := err.(*syntaxError); ok && syntax.message == tooDeep {
		return nil, fmt.Errorf("%w: it has more than %d levels", ErrUnsupported, maxDepth)
	} else if err != nil {
		return nil, err
	}
	v, err := newSurvey(t)
	if err != nil {
		return nil, err
	}
	s := &Schema{raw: raw, tree: t}
	k := &compiler{survey: v, nodes: make(map[*tree]*node, len(v.order))}
	s.root, err = k.compileAll()
	return s, err
}

// JSON is the schema's text, as it was given to [Compile] or inferred. It must not be modified.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Type is the type that the schema names at its root, such as "object". It is "" if the schema
// names no type, or several.
func (s *Schema) Type() string {
	if t := s.tree.getMember("type"); t != nil {
		return t.text
	}
	return ""
}

// Property describes one property at the root of a schema.
type Property struct {
	Name, Title, Description, Type string
	Required                       bool
	Schema                         json.RawMessage // the property's own schema; must not be modified
	Default                        json.RawMessage // the default value, or nil
}

// Properties lists the properties at the schema's root, in their order.
func (s *Schema) Properties() []Property {
	properties, required := s.tree.getMember("properties"), s.tree.getMember("required")
	if properties == nil {
		return nil
	}
	all := make([]Property, 0, len(properties.members))
	for _, m := range properties.members {
		p := Property{Name: m.name, Schema: m.value.raw}
		p.Title, p.Description, p.Type = m.value.textOf("title"), m.value.textOf("description"), m.value.textOf("type")
		if t := m.value.getMember("default"); t != nil {
			p.Default = t.raw
		}
		if required != nil {
			for _, name := range required.items {
				p.Required = p.Required || name.text == m.name
			}
		}
		all = append(all, p)
	}
	return all
}

// Validate checks one JSON value. The error is a [*ValidationError] if the value does not match. It
// wraps [ErrTooComplex] if the check would cost more than the bound. Otherwise data is not one
// well-formed JSON value, and the error names the offset of the fault.
func (s *Schema) Validate(data []byte) error {
	return s.validate(data, maxSteps+4*len(data))
}

func (s *Schema) validate(data []byte, steps int) error {
	c := check{scan: scan{data: data}, steps: steps}
	ok := c.expectEnd(c.checkValue(s.root, c.skipSpace(0)))
	if c.names != nil {
		c.releaseNames()
	}
	switch {
	case c.steps < 0:
		return ErrTooComplex
	case ok:
		return nil
	}
	return s.explain(data, steps)
}

// explain returns the error for a value that Validate refuses.
func (s *Schema) explain(data []byte, steps int) error {
	well := scan{data: data}
	defer well.releaseNames()
	if !well.readAll() {
		return well.syntaxError()
	}
	c := check{scan: scan{data: data, trusted: 1}, steps: steps, explaining: new(explanation)}
	defer c.releaseNames()
	c.checkValue(s.root, c.skipSpace(0))
	x := c.explaining
	if len(x.issues) == 0 {
		x.path = nil
		x.addIssue(faultOther, "must match the schema, but does not; finding out why exceeds the work bound")
	}
	return &ValidationError{Issues: x.issues, More: x.more}
}
