package main

import (
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// kind is what a value may be, in a word or two: "integer", "string…", "red|green".
func (s spec) kind() string {
	if choices := s.choices(); choices != nil {
		return listed(choices)
	}
	types := slices.DeleteFunc(slices.Clone(s.types()), func(t string) bool { return t == "null" })
	if len(types) == 0 {
		return "any"
	}
	for i, t := range types {
		if t == "array" {
			types[i] = s.items().plural()
		}
	}
	return strings.Join(slices.Compact(types), "|")
}

func (s spec) plural() string {
	kind := "any"
	if len(s.raw) > 0 {
		kind = s.kind()
	}
	if strings.Contains(kind, "|") {
		kind = "(" + kind + ")"
	}
	return kind + "…"
}

func listed(choices []choice) string {
	const most = 6
	var texts []string
	for i, c := range choices {
		if i == most {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, line(c.text()))
	}
	return strings.Join(texts, "|")
}

// signature shows how the arguments are written; those in brackets may be left out.
func signature(input spec) []string {
	var words []string
	for _, required := range []bool{true, false} {
		for _, p := range input.properties() {
			word := line(p.name) + "=" + p.kind()
			switch {
			case p.required != required:
				continue
			case !required:
				word = "[" + word + "]"
			}
			words = append(words, word)
		}
	}
	return words
}

// fallback is the default, as it is written on the command line.
func (s spec) fallback() string {
	value := rawjson.Lookup(s.raw, "default")
	if value == nil {
		return ""
	}
	return line(choice{value: value}.text())
}
