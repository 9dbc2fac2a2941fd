package schemaform

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

func unescapeFragment(text string) (string, error) { return url.PathUnescape(text) }

// isChoice reports whether the value is one of a list of constants.
func (m *merged) isChoice() bool {
	if m.members["const"] != nil || m.members["enum"] != nil {
		return true
	}
	for _, v := range m.variants {
		if rawjson.Lookup(v.raw, "const") == nil {
			return false
		}
	}
	return len(m.variants) > 0
}

// setChoices fills in a field with constants. A null among them makes the field nullable.
func (b *builder) setChoices(f *Field, m *merged) {
	f.Kind, f.Nullable = Choice, m.nullable
	add := func(raw []byte, title string) {
		switch {
		case string(raw) == "null":
			f.Nullable = true
		case len(f.Choices) < maxOptions:
			f.Choices = append(f.Choices, Option{json.RawMessage(raw), title})
		}
	}
	switch {
	case m.members["const"] != nil:
		add(m.members["const"], "")
	case m.members["enum"] != nil:
		titles := rawjson.Array(m.members["enumNames"]) // of forms up to 2025-11-25
		for it := rawjson.Array(m.members["enum"]); it.Next(); {
			title := ""
			if titles.Next() {
				title, _ = rawjson.String(titles.Value)
			}
			add(it.Value, title)
		}
	default:
		for _, v := range m.variants {
			title, _ := rawjson.String(rawjson.Lookup(v.raw, "title"))
			add(rawjson.Lookup(v.raw, "const"), title)
		}
	}
	if len(f.Choices) == 0 {
		f.Kind, f.Nullable = Null, false
	}
}

// setVariants fills in a field with alternatives. Each has the keywords beside them, too.
func (b *builder) setVariants(f *Field, m *merged, sources []source, level int) {
	f.Kind, f.Nullable = Variant, m.nullable
	for _, v := range m.variants {
		child := b.buildField(append([]source{v}, m.base...), level+1, m.open)
		own, _ := rawjson.String(rawjson.Lookup(v.raw, "title"))
		child.Title = own
		if own == "" {
			child.Title = describeVariant(child, v)
		}
		if text, _ := rawjson.String(rawjson.Lookup(v.raw, "description")); text == "" {
			child.Description = ""
		}
		f.Variants = append(f.Variants, child)
	}
}

// describeVariant names a variant: by its constants, by the end of its reference, or by its type.
func describeVariant(f *Field, s source) string {
	var words []string
	for _, p := range f.Properties {
		if p.Kind == Choice && len(p.Choices) == 1 && p.Required {
			words = append(words, p.Name+": "+strings.Trim(string(p.Choices[0].Value), `"`))
		}
	}
	if len(words) > 0 {
		return strings.Join(words, ", ")
	}
	if reference, _ := rawjson.String(rawjson.Lookup(s.raw, "$ref")); reference != "" {
		return reference[strings.LastIndexAny(reference, "/#")+1:]
	}
	if f.Kind == Object && len(f.Properties) > 0 {
		for _, p := range f.Properties {
			if len(words) < 3 && (p.Required || len(f.Properties) <= 3) {
				words = append(words, p.Name)
			}
		}
		if len(words) > 0 {
			return "object with " + strings.Join(words, ", ")
		}
	}
	if f.Kind == Array && f.Items != nil && typeWords[f.Items.Kind] != "" && f.Tuple == nil {
		return "list of " + typeWords[f.Items.Kind]
	}
	if f.Kind == Choice {
		return "one of " + string(f.Choices[0].Value) + " …"
	}
	if word := typeWords[f.Kind]; word != "" {
		return word
	}
	return "any JSON"
}

// rules returns the limits of a value in words.
func (m *merged) rules(kind Kind) string {
	var all []string
	between := func(low, high, unit string) {
		from, to := string(m.members[low]), string(m.members[high])
		switch {
		case from != "" && from == to:
			all = append(all, from+unit)
		case from != "" && to != "":
			all = append(all, from+" to "+to+unit)
		case from != "" && from != "0":
			all = append(all, "at least "+from+unit)
		case to != "":
			all = append(all, "at most "+to+unit)
		}
	}
	one := func(keyword, words string) {
		if raw := m.members[keyword]; raw != nil && len(raw) < 200 {
			all = append(all, words+" "+strings.Trim(string(raw), `"`))
		}
	}
	switch kind {
	case Text:
		between("minLength", "maxLength", " characters")
		one("pattern", "matches")
		one("contentMediaType", "")
		one("contentEncoding", "as")
	case Number, Integer:
		if string(m.members["minimum"]) == "0" && m.members["maximum"] == nil {
			all = append(all, "at least 0")
		}
		between("minimum", "maximum", "")
		one("exclusiveMinimum", "more than")
		one("exclusiveMaximum", "less than")
		one("multipleOf", "a multiple of")
	case Array:
		between("minItems", "maxItems", " items")
		if string(m.members["uniqueItems"]) == "true" {
			all = append(all, "no two alike")
		}
	case Object:
		between("minProperties", "maxProperties", " entries")
	}
	return strings.TrimSpace(strings.Join(all, ", "))
}
