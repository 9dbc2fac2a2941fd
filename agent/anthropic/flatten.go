package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// combined are the keywords that the API does not take at the top of a schema; $ref hides what it wants to see there.
var combined = []string{"$ref", "allOf", "anyOf", "oneOf"}

// maxNesting bounds how deep combinations are followed: references may go round in circles.
const maxNesting = 16

// flatten moves the properties of combinations to the top, required where all alternatives require them. What that loses is said in
// the description, so that the model knows it; the server checks it anyhow.
func (d *definition) flatten() error {
	d.inline()
	lost := map[string]json.RawMessage{}
	for _, key := range combined {
		if part, ok := d.schema[key]; ok {
			lost[key] = part
		}
	}
	if len(lost) == 0 {
		return nil
	}
	s := d.shape(d.schema, maxNesting)
	d.drop(combined...)
	if len(s.properties) > 0 {
		d.schema["properties"] = encode(s.properties)
	}
	if len(s.required) > 0 {
		slices.Sort(s.required)
		d.schema["required"] = encode(slices.Compact(s.required))
	}
	if !s.whole {
		d.description = strings.TrimSpace(fmt.Sprintf("%s\n\nThe arguments have to be valid against this JSON Schema, too: %s", d.description, encode(lost)))
	}
	return nil
}

// inline puts what the schema refers to into its place, where nothing else is said beside the reference. Generators put all but the
// reference into the definitions.
func (d *definition) inline() {
	for range maxNesting {
		target := d.referred(d.schema["$ref"])
		for key := range target {
			if _, ok := d.schema[key]; ok && key != "$ref" {
				return
			}
		}
		if target == nil {
			return
		}
		d.drop("$ref")
		maps.Copy(d.schema, target)
	}
}

// shape is what a schema says of an object's properties.
type shape struct {
	properties map[string]json.RawMessage
	required   []string
	whole      bool // it says nothing else
}

// plain are the keywords that a shape holds, or that bind nothing.
var plain = []string{"type", "properties", "required", "title", "description", "$defs", "definitions", "$ref", "allOf", "$comment", "examples", "default"}

func (d *definition) shape(schema map[string]json.RawMessage, depth int) shape {
	s := shape{properties: map[string]json.RawMessage{}, whole: true}
	maps.Copy(s.properties, objectOf(schema["properties"]))
	if json.Unmarshal(schema["required"], &s.required) != nil {
		s.required = nil
	}
	for key := range schema {
		if !slices.Contains(plain, key) && depth != maxNesting { // at the top, what is not moved stays
			s.whole = false
		}
	}
	if depth == 0 {
		s.whole = false
		return s
	}
	if ref, ok := schema["$ref"]; ok {
		s.and(d.shape(d.referred(ref), depth-1))
	}
	for _, part := range listOf(schema["allOf"]) {
		s.and(d.shape(part, depth-1))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if parts := listOf(schema[key]); len(parts) > 0 {
			s.and(d.alternatives(parts, depth-1))
			s.whole = false
		}
	}
	return s
}

// and adds what another shape demands.
func (s *shape) and(o shape) {
	for name, property := range o.properties {
		own, ok := s.properties[name]
		if ok && string(own) != string(property) {
			s.whole = false // the own one stays
			continue
		}
		s.properties[name] = property
	}
	s.required = append(s.required, o.required...)
	s.whole = s.whole && o.whole
}

// alternatives has the properties of all, each in all its forms, and requires what all require.
func (d *definition) alternatives(parts []map[string]json.RawMessage, depth int) shape {
	all := shape{properties: map[string]json.RawMessage{}}
	forms := map[string][]json.RawMessage{}
	for i, part := range parts {
		s := d.shape(part, depth)
		for name, property := range s.properties {
			if !slices.ContainsFunc(forms[name], func(f json.RawMessage) bool { return string(f) == string(property) }) {
				forms[name] = append(forms[name], property)
			}
		}
		if i == 0 {
			all.required = s.required
		}
		all.required = slices.DeleteFunc(all.required, func(name string) bool { return !slices.Contains(s.required, name) })
	}
	for name, f := range forms {
		all.properties[name] = f[0]
		if len(f) > 1 {
			all.properties[name] = encode(map[string]any{"anyOf": f})
		}
	}
	return all
}

func listOf(data json.RawMessage) (list []map[string]json.RawMessage) {
	if json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list
}

// referred is what a reference within the schema points to; nil for any other.
func (d *definition) referred(ref json.RawMessage) map[string]json.RawMessage {
	var pointer string
	if json.Unmarshal(ref, &pointer) != nil || !strings.HasPrefix(pointer, "#/") {
		return nil
	}
	at := d.schema
	for _, key := range strings.Split(pointer[2:], "/") {
		at = objectOf(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)])
	}
	return at
}
