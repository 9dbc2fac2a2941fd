package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Keywords with schemas as values: schemas by name, one schema, or a list.
var (
	mapKeywords    = []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
	schemaKeywords = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems"}
	listKeywords   = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
)

// mendInside applies the rules for schemas inside the top. A member without changes keeps its
// bytes.
func mendInside(s *schema) (string, error) {
	var in schemaMender
	for i, m := range s.members {
		if !slices.Contains(mapKeywords, m.key) {
			continue // other keywords at the top do not hold schemas of arguments
		}
		d := json.NewDecoder(bytes.NewReader(m.value))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			continue
		}
		before := in.changes
		in.mendKeyword(m.key, v)
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

type schemaMender struct{ changes, refs int }

func (in *schemaMender) mendSchema(v any) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	if ref, ok := s["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
		delete(s, "$ref")
		in.changes++
		in.refs++
	}
	in.mendArray(s)
	for key, value := range s {
		in.mendKeyword(key, value)
	}
}

func (in *schemaMender) mendArray(s map[string]any) {
	switch items := s["items"].(type) {
	case nil:
		if typeIncludes(s["type"], "array") {
			s["items"] = map[string]any{}
			in.changes++
		}
	case []any: // drafts before 2020-12: one schema for each position
		s["items"] = map[string]any{"anyOf": items}
		if len(items) == 0 {
			s["items"] = map[string]any{}
		}
		delete(s, "additionalItems")
		in.changes++
	}
}

func typeIncludes(typ any, name string) bool {
	list, _ := typ.([]any)
	return typ == name || slices.Contains(list, any(name))
}

// mendKeyword applies the rules to the schemas that a keyword holds.
func (in *schemaMender) mendKeyword(keyword string, value any) {
	switch {
	case slices.Contains(mapKeywords, keyword):
		all, _ := value.(map[string]any)
		for _, v := range all {
			in.mendSchema(v)
		}
	case slices.Contains(schemaKeywords, keyword):
		in.mendSchema(value)
	case slices.Contains(listKeywords, keyword):
		all, _ := value.([]any)
		for _, v := range all {
			in.mendSchema(v)
		}
	}
}

// strictKeywords are the only keywords that a strict schema may have.
var strictKeywords = []string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs",
	"definitions", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems"}

// maxStrictDepth is the allowed depth of nested schemas.
const maxStrictDepth = 10

// fitsStrict reports whether a schema is in the subset that strict mode takes. Other schemas are
// not forced into it: optional members would have to become null, which servers of tools do not
// take for absent.
func fitsStrict(raw json.RawMessage) bool {
	var v any
	return json.Unmarshal(raw, &v) == nil && isStrict(v, 1)
}

func isStrict(v any, depth int) bool {
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
	if typeIncludes(s["type"], "object") || properties != nil {
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
	return areInnerStrict(s, depth)
}

func areInnerStrict(s map[string]any, depth int) bool {
	for _, keyword := range []string{"properties", "$defs", "definitions"} {
		all, _ := s[keyword].(map[string]any)
		for _, v := range all {
			if !isStrict(v, depth+1) {
				return false
			}
		}
	}
	if items, ok := s["items"]; ok && !isStrict(items, depth+1) {
		return false
	}
	all, _ := s["anyOf"].([]any)
	for _, v := range all {
		if !isStrict(v, depth+1) {
			return false
		}
	}
	return true
}
