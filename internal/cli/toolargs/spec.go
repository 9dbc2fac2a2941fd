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
	level     int // of items within items
}

func NewSpec(raw json.RawMessage) Spec { return Spec{root: raw, raw: raw} }

// within returns a schema that is a part of this one.
func (s Spec) within(raw json.RawMessage) Spec { return Spec{s.root, raw, s.level} }

// Schemas may be circular, and are somebody else's.
const (
	maxSteps  = 256 // references and alternatives that are followed for one schema
	maxLevels = 8   // of items within items
)

// alternatives returns the schemas that a value may match: this one, or those it is made of.
func (s Spec) alternatives() []Spec {
	steps := maxSteps
	return s.expand(&steps)
}

func (s Spec) expand(steps *int) []Spec {
	if *steps--; *steps < 0 {
		return nil
	}
	if ref, ok := rawjson.String(rawjson.Lookup(s.raw, "$ref")); ok {
		return s.target(ref).expand(steps)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var all []Spec
		for it := rawjson.Array(rawjson.Lookup(s.raw, keyword)); it.Next(); {
			all = append(all, s.within(it.Value).expand(steps)...)
		}
		if all != nil && rawjson.Lookup(s.raw, "properties") == nil {
			return all
		}
	}
	if only := rawjson.Array(rawjson.Lookup(s.raw, "allOf")); only.Next() && rawjson.Lookup(s.raw, "type") == nil {
		return s.within(only.Value).expand(steps) // the others narrow it: for the check
	}
	return []Spec{s}
}

// target follows a reference within the document.
func (s Spec) target(ref string) Spec {
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
	return s.within(at)
}

// types returns the names of the types that a value may have; none where any may.
func (s Spec) types() []string {
	var types []string
	for _, alternative := range s.alternatives() {
		own := alternative.ownTypes()
		if own == nil {
			return nil
		}
		types = append(types, own...)
	}
	return slices.Compact(types)
}

func (s Spec) ownTypes() []string {
	declared := rawjson.Lookup(s.raw, "type")
	if name, ok := rawjson.String(declared); ok {
		return []string{name}
	}
	var types []string
	for it := rawjson.Array(declared); it.Next(); {
		name, _ := rawjson.String(it.Value)
		types = append(types, name)
	}
	for _, c := range s.ownChoices() {
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

// choices returns the only values that are allowed; none where others are.
func (s Spec) choices() []choice {
	var all []choice
	for _, alternative := range s.alternatives() {
		own := alternative.ownChoices()
		if own == nil && !slices.Equal(alternative.ownTypes(), []string{"null"}) {
			return nil
		}
		all = append(all, own...)
	}
	return all
}

func (s Spec) ownChoices() []choice {
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

// items is the schema of an array's items.
func (s Spec) items() Spec {
	for _, alternative := range s.alternatives() {
		if items := rawjson.Lookup(alternative.raw, "items"); items != nil {
			inner := s.within(items)
			if inner.level++; inner.level <= maxLevels {
				return inner
			}
		}
	}
	return s.within(nil)
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
	for _, alternative := range s.alternatives() {
		for it := rawjson.Object(rawjson.Lookup(alternative.raw, "properties")); it.Next(); {
			all = append(all, Property{s.within(it.Value), string(it.Key), alternative.requires(string(it.Key))})
		}
	}
	return all
}

func (s Spec) requires(name string) bool {
	for it := rawjson.Array(rawjson.Lookup(s.raw, "required")); it.Next(); {
		if required, _ := rawjson.String(it.Value); required == name {
			return true
		}
	}
	return false
}

func (s Spec) property(name string) (Property, bool) {
	all := s.Properties()
	if i := slices.IndexFunc(all, func(p Property) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return Property{}, false
}

// others is the schema of members that the schema does not name. It is open where the schema says so, or names none.
func (s Spec) others() (of Spec, open bool) {
	for _, alternative := range s.alternatives() {
		more := rawjson.Lookup(alternative.raw, "additionalProperties")
		switch {
		case rawjson.IsObject(more), string(more) == "true":
			return s.within(more), true
		case more == nil && rawjson.Lookup(alternative.raw, "properties") == nil:
			return s.within(nil), true
		}
	}
	return Spec{}, false
}

// readWord reads a word as the JSON value that the schema means. A schema that allows strings and nothing else takes the word as
// it is, whatever it looks like.
func (s Spec) readWord(word string) (json.RawMessage, error) {
	if choices := s.choices(); choices != nil {
		return chosen(choices, word)
	}
	types := s.types()
	if value := json.RawMessage(strings.TrimSpace(word)); rawjson.CheckAll(value) == nil && takes(types, value) {
		return value, nil
	}
	if slices.Contains(types, "array") {
		if item, err := s.items().readWord(word); err == nil {
			return slices.Concat([]byte{'['}, item, []byte{']'}), nil
		}
	}
	if types == nil || slices.Contains(types, "string") {
		return rawjson.AppendString(nil, word), nil
	}
	return nil, fmt.Errorf("must be %s, and %q is not", wanted(types), word)
}

// takes reports whether a word that reads as a JSON value is one: a string in quotes is not, where strings are allowed.
func takes(types []string, value []byte) bool {
	kind := typeOf(value)
	return types == nil || slices.Contains(types, kind) && kind != "string" || kind == "number" && slices.Contains(types, "integer")
}

var articles = map[string]string{
	"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false", "null": "null",
	"array": "a list (give the key several times, or write JSON)", "object": "an object (write JSON, or key.member=value)",
}

func wanted(types []string) string {
	var words []string
	for _, t := range types {
		word, ok := articles[t]
		if !ok {
			word = t
		}
		words = append(words, word)
	}
	return strings.Join(words, " or ")
}

// chosen finds the choice that a word names.
func chosen(choices []choice, word string) (json.RawMessage, error) {
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
