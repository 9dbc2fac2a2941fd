package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// topKeywords are the keywords that the API refuses at the top of a schema. It refuses $ref
// because the reference hides the type.
var topKeywords = []string{"$ref", "allOf", "anyOf", "oneOf"}

// maxNesting limits the depth to which combinations are followed.
const maxNesting = 16

// Limits of following combinations. Without them, a few combinations that refer to one another
// could expand to any number of schemas.
const (
	maxShapes = 1000
	maxRead   = 16 << 20 // bytes
)

var errTooCombined = fmt.Errorf("the combinations and references at the top of its schema expand to more than %d schemas, or to too much text: simplify the schema", maxShapes)

// flattenTop moves the properties of combinations to the top. A property is required if all
// alternatives require it. Constraints that are lost go into the description, so that the model
// knows them; the tool's server checks them anyway.
func (d *definition) flattenTop() error {
	d.inlineRef()
	lost := map[string]json.RawMessage{}
	for _, key := range topKeywords {
		if part, ok := d.schema[key]; ok {
			lost[key] = part
		}
	}
	if len(lost) == 0 {
		return nil
	}
	w := schemaWalker{definition: d, resolved: map[string]map[string]json.RawMessage{}}
	s := w.shapeOf(d.schema, maxNesting)
	if w.isExhausted() {
		return errTooCombined
	}
	d.dropKeywords(topKeywords...)
	if len(s.properties) > 0 {
		d.schema["properties"] = encodeJSON(s.properties)
	}
	if len(s.required) > 0 {
		slices.Sort(s.required)
		d.schema["required"] = encodeJSON(slices.Compact(s.required))
	}
	if !s.complete {
		d.description = strings.TrimSpace(fmt.Sprintf("%s\n\nThe arguments must also be valid against this JSON Schema: %s", d.description, encodeJSON(lost)))
	}
	return nil
}

// inlineRef replaces a reference at the top by its target, if the two have no keyword in common.
// Many generators write a schema that is only a reference to one of its definitions.
func (d *definition) inlineRef() {
	for range maxNesting {
		w := schemaWalker{definition: d, resolved: map[string]map[string]json.RawMessage{}} // a new walker, since the schema has changed
		target := w.resolveRef(d.schema["$ref"])
		for key := range target {
			if _, ok := d.schema[key]; ok && key != "$ref" {
				return
			}
		}
		if target == nil {
			return
		}
		d.dropKeywords("$ref")
		maps.Copy(d.schema, target)
	}
}

// schemaWalker follows the combinations of a definition's schema.
type schemaWalker struct {
	*definition
	shapeCount, bytesRead int
	path                  []string // the references on the way to the current schema
	resolved              map[string]map[string]json.RawMessage
}

// isExhausted reports whether a limit is reached. Shapes returned from then on are incomplete.
func (w *schemaWalker) isExhausted() bool { return w.shapeCount > maxShapes || w.bytesRead > maxRead }

// shape is the part of a schema that concerns the properties of an object.
type shape struct {
	properties map[string]json.RawMessage
	required   []string
	complete   bool // the schema has no other constraint
}

// shapeKeywords are the keywords that a shape represents, and keywords that constrain nothing.
var shapeKeywords = []string{"type", "properties", "required", "title", "description", "$defs", "definitions", "$ref", "allOf", "$comment", "examples", "default"}

func (w *schemaWalker) shapeOf(schema map[string]json.RawMessage, depth int) shape {
	s := shape{properties: map[string]json.RawMessage{}, complete: true}
	w.shapeCount++
	for key, value := range schema {
		w.bytesRead += len(value)
		if !slices.Contains(shapeKeywords, key) && depth != maxNesting { // at the top, other keywords stay
			s.complete = false
		}
	}
	if depth == 0 || w.isExhausted() {
		s.complete = false
		return s
	}
	maps.Copy(s.properties, parseObject(schema["properties"]))
	if json.Unmarshal(schema["required"], &s.required) != nil {
		s.required = nil
	}
	if ref, ok := schema["$ref"]; ok {
		s.mergeShape(w.shapeOfRef(ref, depth-1))
	}
	for _, part := range parseList(schema["allOf"]) {
		s.mergeShape(w.shapeOf(part, depth-1))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if parts := parseList(schema[key]); len(parts) > 0 {
			s.mergeShape(w.shapeOfAny(parts, depth-1))
			s.complete = false
		}
	}
	return s
}

// shapeOfRef returns the shape of a reference's target. The shape of a recursive reference is
// empty.
func (w *schemaWalker) shapeOfRef(ref json.RawMessage, depth int) shape {
	at := string(ref)
	target := w.resolveRef(ref)
	if target == nil || slices.Contains(w.path, at) {
		return shape{}
	}
	w.path = append(w.path, at)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	return w.shapeOf(target, depth)
}

// mergeShape adds the properties and requirements of o to s, as allOf does.
func (s *shape) mergeShape(o shape) {
	for name, property := range o.properties {
		own, ok := s.properties[name]
		if ok && string(own) != string(property) {
			s.complete = false // the first one stays
			continue
		}
		s.properties[name] = property
	}
	s.required = append(s.required, o.required...)
	s.complete = s.complete && o.complete
}

// shapeOfAny returns the shape of alternatives: the properties of all of them, with anyOf if they
// differ, and the names that all of them require.
func (w *schemaWalker) shapeOfAny(parts []map[string]json.RawMessage, depth int) shape {
	all := shape{properties: map[string]json.RawMessage{}}
	forms := map[string][]json.RawMessage{}
	requiring := map[string]int{}
	for _, part := range parts {
		s := w.shapeOf(part, depth)
		if w.isExhausted() {
			return all
		}
		for name, property := range s.properties {
			if !slices.ContainsFunc(forms[name], func(f json.RawMessage) bool { return string(f) == string(property) }) {
				forms[name] = append(forms[name], property)
			}
		}
		slices.Sort(s.required)
		for _, name := range slices.Compact(s.required) {
			requiring[name]++
		}
	}
	for name, n := range requiring {
		if n == len(parts) {
			all.required = append(all.required, name)
		}
	}
	for name, f := range forms {
		all.properties[name] = f[0]
		if len(f) > 1 {
			all.properties[name] = encodeJSON(map[string]any{"anyOf": f})
		}
	}
	return all
}

func parseList(data json.RawMessage) (list []map[string]json.RawMessage) {
	if json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list
}

// maxPointer limits the depth to which a reference may point.
const maxPointer = 16

// pointerKeys returns the keys of a reference within the schema; nil for any other reference.
func pointerKeys(ref json.RawMessage) []string {
	var pointer string
	if json.Unmarshal(ref, &pointer) != nil || !strings.HasPrefix(pointer, "#/") || strings.Count(pointer, "/") > maxPointer {
		return nil
	}
	keys := strings.Split(pointer[2:], "/")
	for i, key := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
	}
	return keys
}

// resolveRef returns the target of a reference; nil if the schema does not hold it. Each part of
// the schema is parsed once.
func (w *schemaWalker) resolveRef(ref json.RawMessage) map[string]json.RawMessage {
	at, way := w.schema, ""
	for _, key := range pointerKeys(ref) {
		way += "/" + strconv.Quote(key)
		next, known := w.resolved[way]
		if !known {
			w.bytesRead += len(at[key])
			next = parseObject(at[key])
			w.resolved[way] = next
		}
		at = next
	}
	if way == "" {
		return nil
	}
	return at
}
