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

// Spec is a JSON Schema, as far as the command line understands it: enough to know what a word was meant to be. Whether
// a value is valid is package schema's to say.
type Spec struct {
	root, raw json.RawMessage
	itemDepth int // of items within items
}

func NewSpec(raw json.RawMessage) Spec { return Spec{root: raw, raw: raw} }

// subschema returns a schema that is a part of this one.
func (s Spec) subschema(raw json.RawMessage) Spec { return Spec{s.root, raw, s.itemDepth} }

// Schemas may be circular, and are somebody else's.
const (
	maxSteps     = 256 // references and alternatives that are followed for one schema
	maxItemDepth = 8   // of items within items
)

// listAlternatives returns the schemas that a value may match: this one, or those it is made of.
func (s Spec) listAlternatives() []Spec {
	steps := maxSteps
	return s.expandAlternatives(&steps)
}

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
		return s.subschema(only.Value).expandAlternatives(steps) // the others narrow it: for the check
	}
	return []Spec{s}
}

// resolveRef follows a reference within the document.
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

// allowedTypes returns the names of the types that a value may have; none where any may.
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

// Text is the value as it is written on a command line.
func (c choice) Text() string {
	if text, ok := rawjson.String(c.value); ok {
		return text
	}
	return string(c.value)
}

// allowedChoices returns the only values that are allowed; none where others are.
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

// Text returns a member that is a string.
func (s Spec) Text(keyword string) string {
	text, _ := rawjson.String(rawjson.Lookup(s.raw, keyword))
	return text
}

// itemSchema is the schema of an array's items.
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

// Property is a member that a schema names.
type Property struct {
	Spec
	Name     string
	Required bool
}

// Properties returns the members that the schema names, in its order.
func (s Spec) Properties() []Property {
	var all []Property
	for _, alternative := range s.listAlternatives() {
		for it := rawjson.Object(rawjson.Lookup(alternative.raw, "properties")); it.Next(); {
			all = append(all, Property{s.subschema(it.Value), string(it.Key), alternative.isRequired(string(it.Key))})
		}
	}
	return all
}

func (s Spec) isRequired(name string) bool {
	for it := rawjson.Array(rawjson.Lookup(s.raw, "required")); it.Next(); {
		if required, _ := rawjson.String(it.Value); required == name {
			return true
		}
	}
	return false
}

func (s Spec) findProperty(name string) (Property, bool) {
	all := s.Properties()
	if i := slices.IndexFunc(all, func(p Property) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return Property{}, false
}

// additionalSchema is the schema of members that the schema does not name. It is open where the schema says so, or names none.
func (s Spec) additionalSchema() (of Spec, open bool) {
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

// parseWord reads a word as the JSON value that the schema means. A schema that allows strings and nothing else takes the word as
// it is, whatever it looks like.
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

// acceptsLiteral reports whether a word that reads as a JSON value is one: a string in quotes is not, where strings are allowed.
func acceptsLiteral(types []string, value []byte) bool {
	kind := typeOf(value)
	return types == nil || slices.Contains(types, kind) && kind != "string" || kind == "number" && slices.Contains(types, "integer")
}

var typeWords = map[string]string{
	"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false", "null": "null",
	"array": "a list (give the key several times, or write JSON)", "object": "an object (write JSON, or key.member=value)",
}

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

// findChoice finds the choice that a word names.
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
