package mcp

import (
	"encoding/json"
	"slices"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// The forms of 2025-06-18 have one shape of choice (enum with enumNames), no choice of several, and defaults for booleans
// only. So there
//
//   - a choice of several is asked as one boolean for each choice, named after both ("colors.red"),
//   - a field with a default need not be filled: its description tells the default, which it gets where it is left empty,
//
// and [AdaptAnswer] makes of the answer what was asked for.

// plainForm rewrites a form's schema for 2025-06-18.
func plainForm(r Revision, raw []byte) ([]byte, bool) {
	properties := rawjson.Lookup(raw, "properties")
	if r >= Revision20251125 || !rawjson.IsObject(properties) {
		return nil, false
	}
	b := rebuild{raw: properties, open: '{', close: '}'}
	var free []string // what need not be filled, though it was required
	for it := rawjson.Object(properties); it.Next(); {
		f := readField(it.Key, it.Value)
		if f.choices != nil {
			b.start()
			for _, c := range f.choices {
				b.add(f.boolean(c), it)
			}
		} else {
			b.replace(it, r, shape{turn: f.plain})
		}
		if f.choices != nil || f.fills() {
			free = append(free, f.name)
		}
	}
	plain, changed := b.done()
	if !changed {
		return nil, false
	}
	return rawjson.Set(rawjson.Set(raw, "properties", plain), "required", requiredBut(raw, free)), true
}

// requiredBut returns a schema's list of required properties without some; nil if that leaves none.
func requiredBut(form []byte, free []string) []byte {
	required := slices.DeleteFunc(requiredOf(form), func(name string) bool { return slices.Contains(free, name) })
	if len(required) == 0 {
		return nil
	}
	raw, _ := Encode(required) // of strings
	return raw
}

func requiredOf(form []byte) (names []string) {
	if Decode(rawjson.Lookup(form, "required"), &names) != nil {
		return nil
	}
	return names
}

// formField is a property of a form as it was asked for.
type formField struct {
	name    string
	raw     []byte
	typ     string
	value   json.RawMessage // its default, nil for none
	choices []choice        // of which several can be chosen; nil for any other field
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

func readField(name, raw []byte) formField {
	f := formField{name: string(name), raw: raw, value: rawjson.Lookup(raw, "default")}
	f.typ, _ = rawjson.String(rawjson.Lookup(raw, "type"))
	if f.typ != "array" {
		return f
	}
	items := rawjson.Lookup(raw, "items")
	var values []string
	if enum := rawjson.Lookup(items, "enum"); enum != nil && Decode(enum, &values) == nil {
		for _, v := range values {
			f.choices = append(f.choices, choice{v, v})
		}
	} else if titled := rawjson.Lookup(items, "anyOf"); titled != nil && Decode(titled, &f.choices) != nil {
		f.choices = nil
	}
	return f
}

// fills reports whether the field gets its default from AdaptAnswer where it is left empty.
func (f formField) fills() bool { return f.value != nil && f.typ != "boolean" && f.typ != "array" }

// member is the name of the boolean that stands for a choice.
func (f formField) member(c choice) string { return f.name + "." + c.Const }

// boolean returns the property that stands for a choice, with its name.
func (f formField) boolean(c choice) []byte {
	title, ok := rawjson.String(rawjson.Lookup(f.raw, "title"))
	if !ok {
		title = f.name
	}
	out := append(rawjson.AppendString(nil, f.member(c)), `:{"type":"boolean","title":`...)
	out = rawjson.AppendString(out, title+": "+c.Title)
	if description := rawjson.Lookup(f.raw, "description"); description != nil {
		out = append(append(out, `,"description":`...), description...)
	}
	var chosen []string
	if f.value != nil && Decode(f.value, &chosen) == nil && slices.Contains(chosen, c.Const) {
		out = append(out, `,"default":true`...)
	}
	return append(out, '}')
}

// plain rewrites a field that stays one.
func (f formField) plain(_ Revision, raw []byte) ([]byte, bool) {
	out := raw
	if f.typ == "array" { // of no choices, which no revision has
		out = rawjson.Set(out, "type", []byte(`"string"`))
		for _, name := range []string{"items", "minItems", "maxItems"} {
			out = rawjson.Set(out, name, nil)
		}
	}
	if f.typ != "boolean" && f.value != nil {
		out = rawjson.Set(out, "default", nil)
	}
	if f.fills() {
		out = rawjson.Set(out, "description", f.telling())
	}
	if choices := rawjson.Lookup(raw, "oneOf"); choices != nil {
		out = plainChoice(out, choices)
	}
	return out, &out[0] != &raw[0]
}

// telling is the field's description with its default.
func (f formField) telling() []byte {
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

// plainChoice turns titled choices into enum and enumNames.
func plainChoice(property, titled []byte) []byte {
	var choices []choice
	if Decode(titled, &choices) != nil {
		return property
	}
	values, titles := make([]string, len(choices)), make([]string, len(choices))
	for i, c := range choices {
		values[i], titles[i] = c.Const, c.Title
	}
	enum, _ := Encode(values) // slices of strings
	names, _ := Encode(titles)
	return rawjson.Set(rawjson.Set(rawjson.Set(property, "oneOf", nil), "enum", enum), "enumNames", names)
}

// AdaptAnswer returns a client's answer to an input request as the latest revision has it, where the client was asked what
// [AdaptParams] made of the request for its revision; raw itself where nothing has to change. What has been adapted stays.
func AdaptAnswer(r Revision, asked InputRequest, raw json.RawMessage) json.RawMessage {
	if r >= Revision20251125 || asked.Method != MethodElicit || !rawjson.Is(rawjson.Lookup(raw, "action"), string(ElicitAccept)) {
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
	content, required := before, requiredOf(form)
	for it := rawjson.Object(rawjson.Lookup(form, "properties")); it.Next(); {
		f := readField(it.Key, it.Value)
		content = f.restore(content, slices.Contains(required, f.name))
	}
	if len(content) == len(before) && string(content) == string(before) {
		return raw
	}
	return rawjson.Set(raw, "content", content)
}

// restore gives the field in a form's content the value that was asked for.
func (f formField) restore(content []byte, required bool) []byte {
	given := rawjson.Lookup(content, f.name)
	switch {
	case f.typ == "array" && given != nil && given[0] == '"':
		return rawjson.Set(content, f.name, append(append([]byte{'['}, given...), ']'))
	case given != nil:
		return content
	case f.choices != nil:
		return f.collect(content, required)
	case f.fills():
		return rawjson.Set(content, f.name, f.value)
	}
	return content
}

// collect makes one list of the booleans that stand for choices.
func (f formField) collect(content []byte, required bool) []byte {
	chosen := []string{}
	for _, c := range f.choices {
		if string(rawjson.Lookup(content, f.member(c))) == "true" {
			chosen = append(chosen, c.Const)
		}
		content = rawjson.Set(content, f.member(c), nil)
	}
	if len(chosen) == 0 && !required {
		return content
	}
	list, _ := Encode(chosen) // of strings
	return rawjson.Set(content, f.name, list)
}
