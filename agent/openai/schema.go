package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// rules are what chat completions demand of a tool's parameters, each with what is done about a schema that breaks it, in this
// order. A schema that breaks none goes as it is, byte for byte. A note says what the model does not see any more (the tool's own
// server checks the arguments all the same); an error leaves the tool out.
var rules = []struct {
	demand string
	mend   func(s *schema) (note string, err error)
}{
	{"no draft is named: some servers take the field for a parameter", dropDraft},
	{"the top is not a reference", inlineTop},
	{"the type of the top is object", typeObject},
	{"the top has no oneOf, anyOf, allOf, enum, const and not", flattenTop},
	{"the top has properties", withProperties},
	{"an array has items, and they are one schema; a reference stays in the schema", mendInside},
}

// acceptable returns a schema as chat completions take it.
func acceptable(raw json.RawMessage) (_ json.RawMessage, notes []string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{}`)
	}
	s, err := readSchema(raw)
	if err != nil {
		return nil, nil, err
	}
	for _, rule := range rules {
		note, err := rule.mend(s)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	if !s.changed {
		return raw, notes, nil
	}
	return s.bytes(), notes, nil
}

// schema is the members of an object, in their order.
type schema struct {
	members []member
	changed bool
}

type member struct {
	key   string
	value json.RawMessage
}

func readSchema(raw json.RawMessage) (*schema, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("its schema is not a JSON object")
	}
	s := new(schema)
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, fmt.Errorf("its schema is not JSON: %w", err)
		}
		s.members = append(s.members, member{key.(string), value}) // a key is a string
	}
	return s, nil
}

func (s *schema) get(key string) json.RawMessage {
	for _, m := range s.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// text returns a member that is a string; empty where it is none.
func (s *schema) text(key string) (text string) {
	_ = json.Unmarshal(s.get(key), &text)
	return text
}

func (s *schema) set(key string, value json.RawMessage) {
	s.changed = true
	for i := range s.members {
		if s.members[i].key == key {
			s.members[i].value = value
			return
		}
	}
	s.members = append(s.members, member{key, value})
}

func (s *schema) drop(key string) {
	n := len(s.members)
	s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.key == key })
	s.changed = s.changed || len(s.members) < n
}

func (s *schema) bytes() json.RawMessage {
	b := []byte{'{'}
	for i, m := range s.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quoted(m.key)...), ':'), m.value...)
	}
	return append(b, '}')
}

// target returns the schema that a reference to somewhere in s means; nil where there is none.
func (s *schema) target(ref string) *schema {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := s
	for _, key := range strings.Split(path, "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		next, err := readSchema(at.get(key))
		if err != nil {
			return nil
		}
		at = next
	}
	return at
}

func dropDraft(s *schema) (string, error) {
	s.drop("$schema")
	return "", nil
}

func inlineTop(s *schema) (string, error) {
	for range 10 {
		ref := s.text("$ref")
		if ref == "" {
			return "", nil
		}
		to := s.target(ref)
		if to == nil {
			return "", fmt.Errorf("its schema is a reference to %s, which is not in it", ref)
		}
		s.drop("$ref")
		for _, m := range to.members {
			if s.get(m.key) == nil {
				s.set(m.key, m.value)
			}
		}
	}
	return "", errors.New("its schema is a reference to itself")
}

func typeObject(s *schema) (string, error) {
	raw := s.get("type")
	var one string
	var several []string
	switch {
	case raw == nil:
		s.members, s.changed = slices.Insert(s.members, 0, member{"type", json.RawMessage(`"object"`)}), true
		return "", nil
	case json.Unmarshal(raw, &one) == nil && one == "object":
		return "", nil
	case json.Unmarshal(raw, &several) == nil && slices.Contains(several, "object"):
		s.set("type", json.RawMessage(`"object"`))
		return "", nil
	}
	return "", fmt.Errorf("its schema describes %s, and arguments are an object", raw)
}

// flattenTop gives the properties of the top's alternatives to the top, where each of them may be given or not. What all of them
// demand together (allOf) stays demanded.
func flattenTop(s *schema) (string, error) {
	var gone []string
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "enum", "const", "not"} {
		raw := s.get(keyword)
		if raw == nil {
			continue
		}
		var branches []json.RawMessage
		if strings.HasSuffix(keyword, "Of") && json.Unmarshal(raw, &branches) == nil {
			for _, branch := range branches {
				s.merge(branch, keyword == "allOf")
			}
		}
		s.drop(keyword)
		if keyword != "allOf" {
			gone = append(gone, keyword)
		}
	}
	if len(gone) == 0 {
		return "", nil
	}
	return "without " + strings.Join(gone, ", ") + " at its top", nil
}

// merge adds the properties of a branch that the top does not have.
func (s *schema) merge(branch json.RawMessage, demanded bool) {
	b, err := readSchema(branch)
	if err != nil {
		return
	}
	if ref := b.text("$ref"); ref != "" {
		if b = s.target(ref); b == nil {
			return
		}
	}
	properties, err := readSchema(s.get("properties"))
	if err != nil {
		properties = new(schema)
	}
	if more, err := readSchema(b.get("properties")); err == nil {
		for _, m := range more.members {
			if properties.get(m.key) == nil {
				properties.set(m.key, m.value)
			}
		}
	}
	s.set("properties", properties.bytes())
	var required, also []string
	if demanded && json.Unmarshal(b.get("required"), &also) == nil {
		_ = json.Unmarshal(s.get("required"), &required) // what is not a list of names demands nothing
		for _, name := range also {
			if !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
		if list, err := json.Marshal(required); err == nil {
			s.set("required", list)
		}
	}
}

func withProperties(s *schema) (string, error) {
	if _, err := readSchema(s.get("properties")); err != nil {
		s.set("properties", json.RawMessage(`{}`))
	}
	return "", nil
}
