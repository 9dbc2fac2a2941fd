package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Keywords whose values are schemas: by name, one, or a list.
var (
	named  = []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
	single = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems"}
	lists  = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
)

// mendInside mends the schemas inside one. Members in which nothing is wrong keep their bytes.
func mendInside(s *schema) (string, error) {
	var in inside
	for i, m := range s.members {
		if !slices.Contains(named, m.key) {
			continue // at the top, all else says nothing of arguments
		}
		d := json.NewDecoder(bytes.NewReader(m.value))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			continue
		}
		before := in.changes
		in.each(m.key, v)
		if in.changes == before {
			continue
		}
		value, err := encodeJSON(v)
		if err != nil {
			return "", err
		}
		s.members[i].value, s.changed = value, true
	}
	if in.refs > 0 {
		return "without references to other documents", nil
	}
	return "", nil
}

type inside struct{ changes, refs int }

func (in *inside) schema(v any) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	if ref, ok := s["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
		delete(s, "$ref")
		in.changes++
		in.refs++
	}
	in.array(s)
	for key, value := range s {
		in.each(key, value)
	}
}

func (in *inside) array(s map[string]any) {
	switch items := s["items"].(type) {
	case nil:
		if holds(s["type"], "array") {
			s["items"] = map[string]any{}
			in.changes++
		}
	case []any: // of drafts before 2020-12: one schema for each place
		s["items"] = map[string]any{"anyOf": items}
		if len(items) == 0 {
			s["items"] = map[string]any{}
		}
		delete(s, "additionalItems")
		in.changes++
	}
}

func holds(typ any, name string) bool {
	list, _ := typ.([]any)
	return typ == name || slices.Contains(list, any(name))
}

// each mends the schemas that a keyword holds.
func (in *inside) each(keyword string, value any) {
	switch {
	case slices.Contains(named, keyword):
		all, _ := value.(map[string]any)
		for _, v := range all {
			in.schema(v)
		}
	case slices.Contains(single, keyword):
		in.schema(value)
	case slices.Contains(lists, keyword):
		all, _ := value.([]any)
		for _, v := range all {
			in.schema(v)
		}
	}
}

// strictKeywords are all that a strict schema may have.
var strictKeywords = []string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs",
	"definitions", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems"}

// maxStrictDepth is how deep schemas may be nested.
const maxStrictDepth = 10

// fitsStrict reports whether a schema is in the subset that strict mode takes. Others are not forced into it: what is optional would
// have to become null, which servers of tools do not take for absent.
func fitsStrict(raw json.RawMessage) bool {
	var v any
	return json.Unmarshal(raw, &v) == nil && strict(v, 1)
}

func strict(v any, depth int) bool {
	s, ok := v.(map[string]any)
	if !ok || depth > maxStrictDepth {
		return false
	}
	saysWhat := false
	for key := range s {
		if !slices.Contains(strictKeywords, key) {
			return false
		}
		saysWhat = saysWhat || slices.Contains([]string{"type", "anyOf", "$ref", "enum", "const"}, key)
	}
	if !saysWhat {
		return false
	}
	properties, _ := s["properties"].(map[string]any)
	if holds(s["type"], "object") || properties != nil {
		if s["additionalProperties"] != false {
			return false
		}
		required := map[string]bool{}
		names, _ := s["required"].([]any)
		for _, name := range names {
			text, _ := name.(string)
			required[text] = true
		}
		for name := range properties {
			if !required[name] {
				return false
			}
		}
	}
	return strictInside(s, depth)
}

func strictInside(s map[string]any, depth int) bool {
	for _, keyword := range []string{"properties", "$defs", "definitions"} {
		all, _ := s[keyword].(map[string]any)
		for _, v := range all {
			if !strict(v, depth+1) {
				return false
			}
		}
	}
	if items, ok := s["items"]; ok && !strict(items, depth+1) {
		return false
	}
	all, _ := s["anyOf"].([]any)
	for _, v := range all {
		if !strict(v, depth+1) {
			return false
		}
	}
	return true
}
