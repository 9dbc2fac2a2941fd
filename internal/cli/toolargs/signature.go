package toolargs

import (
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Kind is what a value may be, in a word or two: "integer", "string…", "red|green".
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

// Signature shows how the arguments are written; those in brackets may be left out.
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

// Fallback is the default, as it is written on the command line.
func (s Spec) Fallback() string {
	value := rawjson.Lookup(s.raw, "default")
	if value == nil {
		return ""
	}
	return term.Line(choice{value: value}.Text())
}
