package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// rules are the API's demands on the parameters of a tool, each with the change for a schema that
// breaks it, in this order. A schema that breaks none is sent byte for byte. A note says what the
// model no longer sees; the tool's own server still checks the arguments. An error leaves the
// tool out.
var rules = []struct {
	demand string
	mend   func(s *schema) (note string, err error)
}{
	{"no draft is named: some servers take the field for a parameter", dropDraft},
	{"the top is not a reference", inlineTop},
	{"the type of the top is object", requireObjectType},
	{"the top has no oneOf, anyOf, allOf, enum, const and not", flattenTop},
	{"the top has properties", requireProperties},
	{"an array has items, and they are one schema; a reference stays in the schema", mendInside},
}

// acceptSchema returns a schema that chat completions accept, and notes about lost parts.
func acceptSchema(raw json.RawMessage) (_ json.RawMessage, notes []string, err error) {
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
	return s.encode(), notes, nil
}

// schema is a JSON object with its members in their order, since a model reads them in that
// order. Of members with the same name the first counts.
type schema struct {
	members  []member
	indexOf  map[string]int // of a name's first member
	changed  bool
	resolved map[string]*schema // schemas by their JSON pointer
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
	s := &schema{indexOf: map[string]int{}}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, fmt.Errorf("its schema is not JSON: %w", err)
		}
		s.addMember(key.(string), value) // a key is a string
	}
	return s, nil
}

func (s *schema) addMember(key string, value json.RawMessage) {
	if _, ok := s.indexOf[key]; !ok {
		s.indexOf[key] = len(s.members)
	}
	s.members = append(s.members, member{key, value})
}

func (s *schema) memberValue(key string) json.RawMessage {
	if i, ok := s.indexOf[key]; ok {
		return s.members[i].value
	}
	return nil
}

// stringMember returns a member that is a string; "" for any other.
func (s *schema) stringMember(key string) (text string) {
	_ = json.Unmarshal(s.memberValue(key), &text)
	return text
}

func (s *schema) setMember(key string, value json.RawMessage) {
	s.changed, s.resolved = true, nil
	if i, ok := s.indexOf[key]; ok {
		s.members[i].value = value
		return
	}
	s.addMember(key, value)
}

func (s *schema) dropMember(key string) {
	if _, ok := s.indexOf[key]; !ok {
		return
	}
	s.changed = true
	s.setMembers(slices.DeleteFunc(s.members, func(m member) bool { return m.key == key }))
}

func (s *schema) setMembers(members []member) {
	s.members, s.resolved = nil, nil
	clear(s.indexOf)
	for _, m := range members {
		s.addMember(m.key, m.value)
	}
}

func (s *schema) encode() json.RawMessage {
	b := []byte{'{'}
	for i, m := range s.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quoteJSON(m.key)...), ':'), m.value...)
	}
	return append(b, '}')
}

// maxPointer limits the depth to which a reference may point.
const maxPointer = 16

// resolveRef returns the part of s that a reference means; nil if s does not hold it. Each part
// is parsed once, so that many references to a large part cost little.
func (s *schema) resolveRef(ref string) *schema {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.Count(path, "/") >= maxPointer {
		return nil
	}
	if s.resolved == nil {
		s.resolved = map[string]*schema{}
	}
	at, way := s, ""
	for _, key := range strings.Split(path, "/") {
		way += "/" + key
		next, known := s.resolved[way]
		if !known {
			next, _ = readSchema(at.memberValue(strings.NewReplacer("~1", "/", "~0", "~").Replace(key))) // nil if it is not an object
			s.resolved[way] = next
		}
		if at = next; at == nil {
			return nil
		}
	}
	return at
}

// dropDraft removes $schema.
func dropDraft(s *schema) (string, error) {
	s.dropMember("$schema")
	return "", nil
}

// inlineTop replaces a reference at the top by its target. Members beside the reference win.
func inlineTop(s *schema) (string, error) {
	for range 10 {
		ref := s.stringMember("$ref")
		if ref == "" {
			return "", nil
		}
		to := s.resolveRef(ref)
		if to == nil {
			return "", fmt.Errorf("its schema is a reference to %s, which is not in it", ref)
		}
		s.dropMember("$ref")
		for _, m := range to.members {
			if s.memberValue(m.key) == nil {
				s.setMember(m.key, m.value)
			}
		}
	}
	return "", errors.New("its schema is a reference to itself")
}

// requireObjectType sets the type of the top to object if the schema allows it.
func requireObjectType(s *schema) (string, error) {
	raw := s.memberValue("type")
	var one string
	var several []string
	switch {
	case raw == nil:
		s.setMembers(slices.Insert(s.members, 0, member{"type", json.RawMessage(`"object"`)}))
		s.changed = true
		return "", nil
	case json.Unmarshal(raw, &one) == nil && one == "object":
		return "", nil
	case json.Unmarshal(raw, &several) == nil && slices.Contains(several, "object"):
		s.setMember("type", json.RawMessage(`"object"`))
		return "", nil
	}
	return "", fmt.Errorf("its schema describes %s, and arguments are an object", raw)
}

// flattenTop moves the properties of the top's branches (allOf, anyOf, oneOf) to the top, and
// removes the branches. Properties that allOf requires stay required.
func flattenTop(s *schema) (string, error) {
	var gone []string
	var f flattened
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "enum", "const", "not"} {
		raw := s.memberValue(keyword)
		if raw == nil {
			continue
		}
		var branches []json.RawMessage
		if strings.HasSuffix(keyword, "Of") && json.Unmarshal(raw, &branches) == nil {
			for _, branch := range branches {
				f.mergeBranch(s, branch, keyword == "allOf")
			}
		}
		s.dropMember(keyword)
		if keyword != "allOf" {
			gone = append(gone, keyword)
		}
	}
	f.applyTo(s)
	if len(gone) == 0 {
		return "", nil
	}
	return "without " + strings.Join(gone, ", ") + " at its top", nil
}

// flattened collects the properties of branches.
type flattened struct {
	properties *schema         // with the top's own; nil without branches
	required   []string        // with the top's own; nil if no branch requires any
	names      map[string]bool // of required
	merged     map[reference]bool
}

// reference is a followed reference. Following it again would add nothing.
type reference struct {
	to       *schema
	demanded bool
}

// mergeBranch adds the properties of a branch that the top does not have.
func (f *flattened) mergeBranch(top *schema, branch json.RawMessage, demanded bool) {
	b, err := readSchema(branch)
	if err != nil {
		return
	}
	if ref := b.stringMember("$ref"); ref != "" {
		b = top.resolveRef(ref)
		if b == nil || f.merged[reference{b, demanded}] {
			return
		}
		if f.merged == nil {
			f.merged = map[reference]bool{}
		}
		f.merged[reference{b, demanded}] = true
	}
	if f.properties == nil {
		if f.properties, err = readSchema(top.memberValue("properties")); err != nil {
			f.properties = &schema{indexOf: map[string]int{}}
		}
	}
	if more, err := readSchema(b.memberValue("properties")); err == nil {
		for _, m := range more.members {
			if f.properties.memberValue(m.key) == nil {
				f.properties.setMember(m.key, m.value)
			}
		}
	}
	if demanded {
		f.mergeRequired(top, b)
	}
}

func (f *flattened) mergeRequired(top, branch *schema) {
	var also []string
	if json.Unmarshal(branch.memberValue("required"), &also) != nil || len(also) == 0 {
		return
	}
	if f.required == nil {
		f.names = map[string]bool{}
		_ = json.Unmarshal(top.memberValue("required"), &f.required) // anything but a list of names requires nothing
		for _, name := range f.required {
			f.names[name] = true
		}
	}
	for _, name := range also {
		if !f.names[name] {
			f.required = append(f.required, name)
			f.names[name] = true
		}
	}
}

func (f *flattened) applyTo(top *schema) {
	if f.properties != nil {
		top.setMember("properties", f.properties.encode())
	}
	if f.required != nil {
		list, err := json.Marshal(f.required)
		if err != nil {
			panic(err) // strings
		}
		top.setMember("required", list)
	}
}

// requireProperties adds an empty object of properties if the top has none.
func requireProperties(s *schema) (string, error) {
	if _, err := readSchema(s.memberValue("properties")); err != nil {
		s.setMember("properties", json.RawMessage(`{}`))
	}
	return "", nil
}
