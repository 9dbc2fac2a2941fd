package toolargs

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/suggest"
)

// Spec is a JSON Schema, as far as the command line needs it to convert words to values. Package
// schema decides whether a value is valid. The zero value accepts every value.
type Spec struct {
	root, raw json.RawMessage
	itemDepth int // how many levels of items lead here
}

// NewSpec returns the spec of a JSON Schema. It does not copy raw.
func NewSpec(raw json.RawMessage) Spec { return Spec{root: raw, raw: raw} }

// subschema returns the spec of a part of this schema. References still start at the root.
func (s Spec) subschema(raw json.RawMessage) Spec { return Spec{s.root, raw, s.itemDepth} }

// Limits for schemas of servers, which may be circular.
const (
	maxSteps     = 256 // references and alternatives followed for one schema
	maxItemDepth = 8   // levels of items within items
)

// listAlternatives returns the schemas that a value may match, with references, anyOf and oneOf
// resolved. It returns a schema without these as the only alternative.
func (s Spec) listAlternatives() []Spec {
	steps := maxSteps
	return s.expandAlternatives(&steps)
}

// expandAlternatives is listAlternatives with a limit of steps, which it counts down.
func (s Spec) expandAlternatives(steps *int) []Spec {
	if *steps--; *steps < 0 {
		return nil
	}
	if ref, ok := rawjson.String(rawjson.Lookup(s.raw, "$ref")); ok {
		return s.resolveRef(ref).expandAlternatives(steps)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var all []Spec
		for it := rawjson.Array(rawjson.Lookup(s.raw, keyword)); it.Next(); {
			all = append(all, s.subschema(it.Value).expandAlternatives(steps)...)
		}
		if all != nil && rawjson.Lookup(s.raw, "properties") == nil {
			return all
		}
	}
	if only := rawjson.Array(rawjson.Lookup(s.raw, "allOf")); only.Next() && rawjson.Lookup(s.raw, "type") == nil {
		return s.subschema(only.Value).expandAlternatives(steps) // the other parts only narrow it; [Check] applies them
	}
	return []Spec{s}
}

// resolveRef returns the schema that a reference within the document points to. For other
// references it returns an empty schema.
func (s Spec) resolveRef(ref string) Spec {
	pointer, ok := strings.CutPrefix(ref, "#")
	at := s.root
	for _, name := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if name == "" {
			continue
		}
		name, _ = url.PathUnescape(name)
		at = rawjson.Lookup(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	if !ok {
		at = nil
	}
	return s.subschema(at)
}

// allowedTypes returns the names of the types that a value may have, or nil if all are allowed.
func (s Spec) allowedTypes() []string {
	var types []string
	for _, alternative := range s.listAlternatives() {
		own := alternative.declaredTypes()
		if own == nil {
			return nil
		}
		types = append(types, own...)
	}
	return slices.Compact(types)
}

// declaredTypes returns the types that the schema itself declares or implies, without alternatives.
func (s Spec) declaredTypes() []string {
	declared := rawjson.Lookup(s.raw, "type")
	if name, ok := rawjson.String(declared); ok {
		return []string{name}
	}
	var types []string
	for it := rawjson.Array(declared); it.Next(); {
		name, _ := rawjson.String(it.Value)
		types = append(types, name)
	}
	for _, c := range s.declaredChoices() {
		types = append(types, typeOf(c.value))
	}
	switch {
	case types != nil:
		return types
	case rawjson.Lookup(s.raw, "properties") != nil:
		return []string{"object"}
	case rawjson.Lookup(s.raw, "items") != nil:
		return []string{"array"}
	}
	return nil
}

// typeOf names the type of a JSON value.
func typeOf(value []byte) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// choice is one value of an enumeration.
type choice struct {
	value json.RawMessage
	Title string
}

// Text returns the value as one writes it on a command line.
func (c choice) Text() string {
	if text, ok := rawjson.String(c.value); ok {
		return text
	}
	return string(c.value)
}

// allowedChoices returns the allowed values of an enumeration, or nil if other values are allowed.
func (s Spec) allowedChoices() []choice {
	var all []choice
	for _, alternative := range s.listAlternatives() {
		own := alternative.declaredChoices()
		if own == nil && !slices.Equal(alternative.declaredTypes(), []string{"null"}) {
			return nil
		}
		all = append(all, own...)
	}
	return all
}

// declaredChoices returns the values of const or enum in the schema itself.
func (s Spec) declaredChoices() []choice {
	var all []choice
	if value := rawjson.Lookup(s.raw, "const"); value != nil {
		return []choice{{value, s.Text("title")}}
	}
	for it := rawjson.Array(rawjson.Lookup(s.raw, "enum")); it.Next(); {
		all = append(all, choice{value: it.Value})
	}
	i := 0
	for it := rawjson.Array(rawjson.Lookup(s.raw, "enumNames")); it.Next() && i < len(all); i++ {
		all[i].Title, _ = rawjson.String(it.Value)
	}
	return all
}

// Text returns the value of a keyword if it is a string, else "".
func (s Spec) Text(keyword string) string {
	text, _ := rawjson.String(rawjson.Lookup(s.raw, keyword))
	return text
}

// itemSchema returns the schema of an array's items. It is empty if the schema does not
// declare items, or if they are nested too deeply.
func (s Spec) itemSchema() Spec {
	for _, alternative := range s.listAlternatives() {
		if items := rawjson.Lookup(alternative.raw, "items"); items != nil {
			inner := s.subschema(items)
			if inner.itemDepth++; inner.itemDepth <= maxItemDepth {
				return inner
			}
		}
	}
	return s.subschema(nil)
}

// Property is a named property of an object schema.
type Property struct {
	Spec
	Name     string
	Required bool
}

// Properties returns the named properties in the order of the schema.
func (s Spec) Properties() []Property {
	var all []Property
	for _, alternative := range s.listAlternatives() {
		for it := rawjson.Object(rawjson.Lookup(alternative.raw, "properties")); it.Next(); {
			all = append(all, Property{s.subschema(it.Value), string(it.Key), alternative.isRequired(string(it.Key))})
		}
	}
	return all
}

// isRequired reports whether the schema requires the property.
func (s Spec) isRequired(name string) bool {
	for it := rawjson.Array(rawjson.Lookup(s.raw, "required")); it.Next(); {
		if required, _ := rawjson.String(it.Value); required == name {
			return true
		}
	}
	return false
}

// findProperty returns the named property. ok is false if the schema does not name it.
func (s Spec) findProperty(name string) (p Property, ok bool) {
	all := s.Properties()
	if i := slices.IndexFunc(all, func(p Property) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return Property{}, false
}

// additionalSchema returns the schema of properties that the schema does not name. open reports
// whether it allows them: it says so, or it names no properties.
func (s Spec) additionalSchema() (additional Spec, open bool) {
	for _, alternative := range s.listAlternatives() {
		more := rawjson.Lookup(alternative.raw, "additionalProperties")
		switch {
		case rawjson.IsObject(more), string(more) == "true":
			return s.subschema(more), true
		case more == nil && rawjson.Lookup(alternative.raw, "properties") == nil:
			return s.subschema(nil), true
		}
	}
	return Spec{}, false
}

// parseWord converts a word to a JSON value of an allowed type. If the schema allows only strings,
// the word becomes a string even if it looks like another JSON value.
func (s Spec) parseWord(word string) (json.RawMessage, error) {
	if choices := s.allowedChoices(); choices != nil {
		return findChoice(choices, word)
	}
	types := s.allowedTypes()
	if value := json.RawMessage(strings.TrimSpace(word)); rawjson.CheckAll(value) == nil && acceptsLiteral(types, value) {
		return value, nil
	}
	if slices.Contains(types, "array") {
		if item, err := s.itemSchema().parseWord(word); err == nil {
			return slices.Concat([]byte{'['}, item, []byte{']'}), nil
		}
	}
	if types == nil || slices.Contains(types, "string") {
		return rawjson.AppendString(nil, word), nil
	}
	return nil, fmt.Errorf("must be %s, and %q is not", describeTypes(types), word)
}

// acceptsLiteral reports whether the word is to be read as the JSON value that it looks like. A
// string in quotes is not, if the types allow strings: the quotes then belong to the text.
func acceptsLiteral(types []string, value []byte) bool {
	kind := typeOf(value)
	return types == nil || slices.Contains(types, kind) && kind != "string" || kind == "number" && slices.Contains(types, "integer")
}

// typeWords describes the JSON types for error messages.
var typeWords = map[string]string{
	"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false", "null": "null",
	"array": "a list (give the key several times, or write JSON)", "object": "an object (write JSON, or key.member=value)",
}

// describeTypes formats types for error messages.
func describeTypes(types []string) string {
	var words []string
	for _, t := range types {
		word, ok := typeWords[t]
		if !ok {
			word = t
		}
		words = append(words, word)
	}
	return strings.Join(words, " or ")
}

// findChoice returns the value of the choice that a word names.
func findChoice(choices []choice, word string) (json.RawMessage, error) {
	var texts []string
	for _, c := range choices {
		if c.Text() == word {
			return c.value, nil
		}
		texts = append(texts, c.Text())
	}
	hint := ""
	if near := suggest.Nearest(word, texts); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return nil, fmt.Errorf("must be one of %s, and %q is not%s", strings.Join(texts, ", "), word, hint)
}
