package mcpwire

import (
	"encoding/json"
	"slices"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// The forms of 2025-06-18 have one kind of choice (enum with enumNames), no multiple choice, and
// defaults for booleans only. For that revision
//
//   - a multiple choice becomes one boolean for each choice, named after both ("colors.red"),
//   - a field with a default becomes optional; its description names the default, which an empty
//     field gets,
//
// and [AdaptAnswer] converts the answer back to the requested form.

// adaptForm rewrites a form's schema for 2025-06-18.
func adaptForm(r mcp.Revision, raw []byte) ([]byte, bool) {
	properties := rawjson.Lookup(raw, "properties")
	if r >= mcp.Revision20251125 || !rawjson.IsObject(properties) {
		return nil, false
	}
	b := rewriter{raw: properties, open: '{', close: '}'}
	var free []string // names of fields that become optional
	for it := rawjson.Object(properties); it.Next(); {
		f := parseFormField(it.Key, it.Value)
		if f.choices != nil {
			b.startCopy()
			for _, c := range f.choices {
				b.appendMember(f.booleanProperty(c), it)
			}
		} else {
			b.adaptMember(it, r, shapeRule{convert: f.adaptProperty})
		}
		if f.choices != nil || f.isFilledIn() {
			free = append(free, f.name)
		}
	}
	plain, changed := b.finishCopy()
	if !changed {
		return nil, false
	}
	return rawjson.Set(rawjson.Set(raw, "properties", plain), "required", requiredWithout(raw, free)), true
}

// requiredWithout returns a schema's list of required properties without the names in free, or nil
// if that is empty.
func requiredWithout(form []byte, free []string) []byte {
	required := slices.DeleteFunc(requiredNames(form), func(name string) bool { return slices.Contains(free, name) })
	if len(required) == 0 {
		return nil
	}
	raw, _ := mcp.Encode(required) // cannot fail: a slice of strings
	return raw
}

func requiredNames(form []byte) (names []string) {
	if mcp.Decode(rawjson.Lookup(form, "required"), &names) != nil {
		return nil
	}
	return names
}

// formField is a property of the requested form.
type formField struct {
	name    string
	raw     []byte
	typ     string
	value   json.RawMessage // the default; nil without one
	choices []choice        // the choices of a multiple choice; nil for other fields
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

func parseFormField(name, raw []byte) formField {
	f := formField{name: string(name), raw: raw, value: rawjson.Lookup(raw, "default")}
	f.typ, _ = rawjson.String(rawjson.Lookup(raw, "type"))
	if f.typ != "array" {
		return f
	}
	items := rawjson.Lookup(raw, "items")
	var values []string
	if enum := rawjson.Lookup(items, "enum"); enum != nil && mcp.Decode(enum, &values) == nil {
		for _, v := range values {
			f.choices = append(f.choices, choice{v, v})
		}
	} else if titled := rawjson.Lookup(items, "anyOf"); titled != nil && mcp.Decode(titled, &f.choices) != nil {
		f.choices = nil
	}
	return f
}

// isFilledIn reports whether AdaptAnswer fills in the field's default.
func (f formField) isFilledIn() bool { return f.value != nil && f.typ != "boolean" && f.typ != "array" }

// booleanName returns the name of the boolean that represents a choice.
func (f formField) booleanName(c choice) string { return f.name + "." + c.Const }

// booleanProperty returns the property that represents a choice, with its name.
func (f formField) booleanProperty(c choice) []byte {
	title, ok := rawjson.String(rawjson.Lookup(f.raw, "title"))
	if !ok {
		title = f.name
	}
	out := append(rawjson.AppendString(nil, f.booleanName(c)), `:{"type":"boolean","title":`...)
	out = rawjson.AppendString(out, title+": "+c.Title)
	if description := rawjson.Lookup(f.raw, "description"); description != nil {
		out = append(append(out, `,"description":`...), description...)
	}
	var chosen []string
	if f.value != nil && mcp.Decode(f.value, &chosen) == nil && slices.Contains(chosen, c.Const) {
		out = append(out, `,"default":true`...)
	}
	return append(out, '}')
}

// adaptProperty rewrites a field that remains a single field.
func (f formField) adaptProperty(_ mcp.Revision, raw []byte) ([]byte, bool) {
	out := raw
	if f.typ == "array" { // an array without choices, which no revision allows
		out = rawjson.Set(out, "type", []byte(`"string"`))
		for _, name := range []string{"items", "minItems", "maxItems"} {
			out = rawjson.Set(out, name, nil)
		}
	}
	if f.typ != "boolean" && f.value != nil {
		out = rawjson.Set(out, "default", nil)
	}
	if f.isFilledIn() {
		out = rawjson.Set(out, "description", f.describeDefault())
	}
	if choices := rawjson.Lookup(raw, "oneOf"); choices != nil {
		out = adaptChoice(out, choices)
	}
	return out, &out[0] != &raw[0]
}

// describeDefault returns the field's description, extended by its default.
func (f formField) describeDefault() []byte {
	text, _ := rawjson.String(rawjson.Lookup(f.raw, "description"))
	if text != "" {
		text += " "
	}
	value, ok := rawjson.String(f.value)
	if !ok {
		value = string(f.value)
	}
	return rawjson.AppendString(nil, text+"(default: "+value+")")
}

// adaptChoice converts titled choices into enum and enumNames.
func adaptChoice(property, titled []byte) []byte {
	var choices []choice
	if mcp.Decode(titled, &choices) != nil {
		return property
	}
	values, titles := make([]string, len(choices)), make([]string, len(choices))
	for i, c := range choices {
		values[i], titles[i] = c.Const, c.Title
	}
	enum, _ := mcp.Encode(values) // cannot fail: slices of strings
	names, _ := mcp.Encode(titles)
	return rawjson.Set(rawjson.Set(rawjson.Set(property, "oneOf", nil), "enum", enum), "enumNames", names)
}

// AdaptAnswer converts a client's answer to an input request into the form of the latest revision,
// if [AdaptParams] had adapted the request for revision r. It returns raw itself if nothing
// changes. Adapting an answer twice is harmless.
func AdaptAnswer(r mcp.Revision, asked mcp.InputRequest, raw json.RawMessage) json.RawMessage {
	if r >= mcp.Revision20251125 || asked.Method != mcp.MethodElicit || !rawjson.Is(rawjson.Lookup(raw, "action"), string(mcp.ElicitAccept)) {
		return raw
	}
	form := rawjson.Lookup(asked.Params, "requestedSchema")
	before := rawjson.Lookup(raw, "content")
	if before == nil {
		before = []byte("{}")
	}
	if form == nil || !rawjson.IsObject(before) {
		return raw
	}
	content, required := before, requiredNames(form)
	for it := rawjson.Object(rawjson.Lookup(form, "properties")); it.Next(); {
		f := parseFormField(it.Key, it.Value)
		content = f.restoreValue(content, slices.Contains(required, f.name))
	}
	if len(content) == len(before) && string(content) == string(before) {
		return raw
	}
	return rawjson.Set(raw, "content", content)
}

// restoreValue returns the form's content with the field's value in the requested form.
func (f formField) restoreValue(content []byte, required bool) []byte {
	given := rawjson.Lookup(content, f.name)
	switch {
	case f.typ == "array" && given != nil && given[0] == '"':
		return rawjson.Set(content, f.name, append(append([]byte{'['}, given...), ']'))
	case given != nil:
		return content
	case f.choices != nil:
		return f.collectChoices(content, required)
	case f.isFilledIn():
		return rawjson.Set(content, f.name, f.value)
	}
	return content
}

// collectChoices replaces the booleans that represent choices by one list.
func (f formField) collectChoices(content []byte, required bool) []byte {
	chosen := []string{}
	for _, c := range f.choices {
		if string(rawjson.Lookup(content, f.booleanName(c))) == "true" {
			chosen = append(chosen, c.Const)
		}
		content = rawjson.Set(content, f.booleanName(c), nil)
	}
	if len(chosen) == 0 && !required {
		return content
	}
	list, _ := mcp.Encode(chosen) // cannot fail: a slice of strings
	return rawjson.Set(content, f.name, list)
}
