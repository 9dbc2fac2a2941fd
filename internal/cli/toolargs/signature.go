package toolargs

import (
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Kind describes the type of a value in a word or two: "integer", "string…" for a list,
// "red|green".
func (s Spec) Kind() string {
	if choices := s.allowedChoices(); choices != nil {
		return joinChoices(choices)
	}
	types := slices.DeleteFunc(slices.Clone(s.allowedTypes()), func(t string) bool { return t == "null" })
	if len(types) == 0 {
		return "any"
	}
	for i, t := range types {
		if t == "array" {
			types[i] = s.itemSchema().formatListKind()
		}
	}
	return strings.Join(slices.Compact(types), "|")
}

// formatListKind returns the kind of a list with items of this schema, such as "string…".
func (s Spec) formatListKind() string {
	kind := "any"
	if len(s.raw) > 0 {
		kind = s.Kind()
	}
	if strings.Contains(kind, "|") {
		kind = "(" + kind + ")"
	}
	return kind + "…"
}

// joinChoices joins at most six choices, such as "red|green".
func joinChoices(choices []choice) string {
	const most = 6
	var texts []string
	for i, c := range choices {
		if i == most {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, term.Line(c.Text()))
	}
	return strings.Join(texts, "|")
}

// Signature returns a word for each argument, such as "a=number" or "[b=string]". Optional
// arguments are in brackets and follow the required ones.
func Signature(input Spec) []string {
	var words []string
	for _, required := range []bool{true, false} {
		for _, p := range input.Properties() {
			word := term.Line(p.Name) + "=" + p.Kind()
			switch {
			case p.Required != required:
				continue
			case !required:
				word = "[" + word + "]"
			}
			words = append(words, word)
		}
	}
	return words
}

// Fallback returns the default as one writes it on the command line, or "" without a default.
func (s Spec) Fallback() string {
	value := rawjson.Lookup(s.raw, "default")
	if value == nil {
		return ""
	}
	return term.Line(choice{value: value}.Text())
}
