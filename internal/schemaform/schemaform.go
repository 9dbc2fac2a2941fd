// Package schemaform turns a JSON Schema into the model of a form, which a page or a terminal draws
// without knowledge of JSON Schema. The model helps to fill in a value; package schema checks it.
//
//	field, err := schemaform.Build(tool.InputSchema)
//	inner, err := schemaform.Build(tool.InputSchema, field.Properties[0].At...) // a lazy field
//
// A model is small whatever the schema is: fields that are deep, recursive or too many are lazy,
// and Build opens them by their places.
package schemaform

import (
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Kind says how a field is filled in.
type Kind string

// The kinds of fields.
const (
	Text    Kind = "string"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Null    Kind = "null"
	Object  Kind = "object" // Properties, and Extra for further ones; a map has Extra only
	Array   Kind = "array"  // Tuple for the first items, Items for the others
	Choice  Kind = "choice" // one of Choices
	Variant Kind = "variants"
	Any     Kind = "any"   // JSON
	Never   Kind = "never" // no value is allowed
	Lazy    Kind = "lazy"  // Build with At makes the field
)

// Field is one value of a form.
type Field struct {
	Kind        Kind   `json:"kind"`
	Name        string `json:"name,omitempty"` // of a property
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Required: the object that has the property must have it.
	Required bool `json:"required,omitempty"`
	// Nullable: null is allowed beside the values of the kind.
	Nullable bool `json:"nullable,omitempty"`
	// Rules are the limits in words, such as "1 to 10 characters".
	Rules    string            `json:"rules,omitempty"`
	Format   string            `json:"format,omitempty"`
	Default  json.RawMessage   `json:"default,omitempty"`
	Examples []json.RawMessage `json:"examples,omitempty"`
	Choices  []Option          `json:"choices,omitempty"`

	Properties []*Field `json:"properties,omitempty"`
	// Extra is the form of properties with other names; nil allows none.
	Extra *Field   `json:"extra,omitempty"`
	Tuple []*Field `json:"tuple,omitempty"`
	// Items is the form of items behind the tuple; nil allows none.
	Items    *Field   `json:"items,omitempty"`
	MinItems int      `json:"minItems,omitempty"`
	Variants []*Field `json:"variants,omitempty"`
	// At names the schema of a lazy field, for Build.
	At []string `json:"at,omitempty"`
}

// Option is a value of a choice.
type Option struct {
	Value json.RawMessage `json:"value"`
	Title string          `json:"title,omitempty"`
}

// Limits of a model.
const (
	maxLevels  = 4   // of fields in fields, before they are lazy
	maxFields  = 400 // of one model
	maxOptions = 500
	maxSources = 64 // schemas that describe one field
	maxText    = 4000
	// maxWork limits the bytes that one model reads. Further references and alternatives
	// are left out.
	maxWork = 64 << 20
	// maxSchema limits a schema, in bytes. Package schema has the same limit.
	maxSchema = 1 << 20
)

var (
	errTooLarge = errors.New("the schema is too large for a form: fill in the JSON")
	errNoSchema = errors.New("the schema has no such place")
)

// Build returns the form of a schema. at are the places of a lazy field of the same schema; without
// them the form is of the whole schema.
func Build(schema json.RawMessage, at ...string) (*Field, error) {
	if len(schema) > maxSchema {
		return nil, errTooLarge
	}
	if err := rawjson.CheckAll(schema); err != nil {
		return nil, err
	}
	b := &builder{document: schema}
	if len(at) == 0 {
		at = []string{""}
	}
	if len(at) > maxSources {
		return nil, errNoSchema
	}
	var sources []source
	for _, place := range at {
		s, ok := b.parsePlace(place)
		if !ok {
			return nil, errNoSchema
		}
		sources = append(sources, s)
	}
	return b.buildField(sources, 0, at), nil
}

// builder builds one model.
type builder struct {
	document json.RawMessage
	fields   int
	work     int               // bytes that were read
	anchors  map[string]string // places by the references that name them; nil until they are needed
}

// buildField returns the field that sources describe together. open are the references that the
// fields around it follow.
func (b *builder) buildField(sources []source, level int, open []string) *Field {
	b.fields++
	m := b.mergeSources(sources, open)
	f := &Field{Title: m.text("title"), Description: m.text("description"), Default: m.members["default"], Format: m.text("format")}
	for it := rawjson.Array(m.members["examples"]); it.Next() && len(f.Examples) < 5; {
		f.Examples = append(f.Examples, json.RawMessage(it.Value))
	}
	switch {
	case m.isRecursive || level > 0 && (level > maxLevels || b.fields > maxFields) && m.hasChildren():
		f.Kind, f.At, f.Nullable = Lazy, placesOf(sources), m.nullable
		return f
	case m.isNever:
		f.Kind = Never
		return f
	}
	if m.isChoice() {
		b.setChoices(f, m)
		return f
	}
	if len(m.variants) > 0 {
		b.setVariants(f, m, sources, level)
		return f
	}
	b.setType(f, m, level)
	return f
}

// setType fills in a field that has neither choices nor variants.
func (b *builder) setType(f *Field, m *merged, level int) {
	types := m.types()
	if len(types) > 1 {
		f.Kind = Variant
		for _, t := range types {
			v := &Field{Title: typeWords[t]}
			b.setKind(v, m, t, level)
			f.Variants = append(f.Variants, v)
		}
	} else if len(types) == 1 {
		b.setKind(f, m, types[0], level)
	} else {
		f.Kind = Any
	}
	f.Nullable = m.nullable && f.Kind != Any
	if m.nullable && len(types) == 0 {
		f.Kind, f.Nullable = Null, false
	}
}

// setKind fills in a field of one type.
func (b *builder) setKind(f *Field, m *merged, kind Kind, level int) {
	f.Kind, f.Rules = kind, m.rules(kind)
	switch kind {
	case Object:
		b.setProperties(f, m, level)
	case Array:
		b.setItems(f, m, level)
	}
}

func (b *builder) setProperties(f *Field, m *merged, level int) {
	for _, p := range m.properties {
		child := b.buildField(p.sources, level+1, m.open)
		child.Name, child.Required = p.name, m.required[p.name]
		f.Properties = append(f.Properties, child)
	}
	for _, name := range m.requiredNames {
		if m.property(name) == nil {
			f.Properties = append(f.Properties, &Field{Kind: Any, Name: name, Required: true})
		}
	}
	extra := m.sourcesOf("additionalProperties")
	if extra == nil {
		extra = m.sourcesOf("unevaluatedProperties")
	}
	switch {
	case extra != nil:
		f.Extra = b.buildField(extra, level+1, m.open)
		if f.Extra.Kind == Never {
			f.Extra = nil
		}
	case m.patternProperties != nil:
		f.Extra = b.buildField(m.patternProperties, level+1, m.open)
	default:
		f.Extra = &Field{Kind: Any}
	}
}

func (b *builder) setItems(f *Field, m *merged, level int) {
	tuple, rest := "prefixItems", "items"
	if m.members["prefixItems"] == nil && len(m.members["items"]) > 0 && m.members["items"][0] == '[' {
		tuple, rest = "items", "additionalItems" // up to draft 2019-09
	}
	for i, it := 0, rawjson.Array(m.members[tuple]); it.Next(); i++ {
		if b.fields > maxFields {
			break
		}
		f.Tuple = append(f.Tuple, b.buildField([]source{m.child(tuple, tokenOf(i), it.Value)}, level+1, m.open))
	}
	f.Items = &Field{Kind: Any}
	if items := m.sourcesOf(rest); items != nil {
		if f.Items = b.buildField(items, level+1, m.open); f.Items.Kind == Never {
			f.Items = nil
		}
	}
	f.MinItems = m.number("minItems")
}
