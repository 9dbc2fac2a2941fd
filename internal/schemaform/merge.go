package schemaform

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// source is a schema at a place of the document.
type source struct {
	place string // a JSON pointer
	raw   json.RawMessage
	// base: oneOf and anyOf of the schema are left out, because one of them is chosen.
	base bool
}

// baseMark begins the name of a source that is a base.
const baseMark = "!"

func placesOf(sources []source) (all []string) {
	for _, s := range sources {
		if s.base {
			s.place = baseMark + s.place
		}
		all = append(all, s.place)
	}
	return all
}

// parsePlace is the reverse of placesOf, for one place.
func (b *builder) parsePlace(place string) (source, bool) {
	pointer, base := strings.CutPrefix(place, baseMark)
	raw := b.findValue(pointer)
	return source{pointer, raw, base}, raw != nil
}

// findValue returns the value at a JSON pointer of the document, or nil.
func (b *builder) findValue(pointer string) json.RawMessage {
	raw := []byte(b.document)
	if pointer == "" {
		return raw
	}
	if b.work += len(raw); b.work > maxWork {
		return nil
	}
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if next := rawjson.Lookup(raw, token); next != nil {
			raw = next
			continue
		}
		index, err := strconv.Atoi(token)
		it := rawjson.Array(raw)
		for ; err == nil && index >= 0 && it.Next(); index-- {
			raw = it.Value
		}
		if err != nil || index >= 0 {
			return nil
		}
	}
	return raw
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func tokenOf(index int) string { return strconv.Itoa(index) }

// merged are the keywords of several schemas that describe one value.
type merged struct {
	members           map[string]json.RawMessage // the first schema that has a keyword decides
	owner             map[string]source          // of each member
	properties        []property
	required          map[string]bool
	requiredNames     []string
	patternProperties []source
	variants          []source // of the first oneOf or anyOf
	base              []source // the schemas beside the variants
	open              []string // references that are followed
	nullable          bool
	isNever           bool
	isRecursive       bool // a reference is open already
	count             int
}

type property struct {
	name    string
	sources []source
}

// mergeSources merges schemas, and follows their references.
func (b *builder) mergeSources(sources []source, open []string) *merged {
	m := &merged{members: map[string]json.RawMessage{}, owner: map[string]source{}, required: map[string]bool{}, open: slices.Clone(open)}
	for _, s := range sources {
		b.merge(m, s, open, true)
	}
	m.dropNull(b)
	return m
}

// merge adds one schema. before are the references that were open before this field. Properties
// that a condition asks for are never required.
func (b *builder) merge(m *merged, s source, before []string, decides bool) {
	m.count++
	if b.work += len(s.raw); m.count > maxSources || b.work > maxWork {
		return
	}
	if string(s.raw) == "false" {
		m.isNever = true
		return
	}
	if decides {
		m.base = append(m.base, source{s.place, s.raw, true})
	}
	for it := rawjson.Object(s.raw); it.Next(); {
		key := string(it.Key)
		if _, known := m.members[key]; !known && (decides || key == "additionalProperties") && !(s.base && (key == "oneOf" || key == "anyOf")) {
			m.members[key], m.owner[key] = it.Value, s
		}
		switch key {
		case "$ref", "$dynamicRef":
			if !s.base { // its references are sources of their own
				b.mergeReference(m, it.Value, before)
			}
		case "allOf":
			for i, all := 0, rawjson.Array(it.Value); !s.base && all.Next(); i++ {
				b.merge(m, source{s.place + "/allOf/" + tokenOf(i), all.Value, false}, before, decides)
			}
		case "then", "else":
			b.merge(m, source{s.place + "/" + key, it.Value, false}, before, false)
		case "dependentSchemas":
			for all := rawjson.Object(it.Value); all.Next(); {
				b.merge(m, source{s.place + "/dependentSchemas/" + pointerEscape.Replace(string(all.Key)), all.Value, false}, before, false)
			}
		case "properties":
			m.addProperties(s.place, it.Value)
		case "patternProperties":
			for all := rawjson.Object(it.Value); all.Next() && m.patternProperties == nil; {
				m.patternProperties = []source{{s.place + "/patternProperties/" + pointerEscape.Replace(string(all.Key)), all.Value, false}}
			}
		case "required":
			m.addRequired(it.Value, decides)
		case "oneOf", "anyOf":
			if !s.base && decides {
				m.addVariants(s.place+"/"+key, it.Value)
			}
		}
	}
}

// mergeReference adds the schema that a reference names. One that is open makes the field
// recursive.
func (b *builder) mergeReference(m *merged, raw []byte, before []string) {
	text, ok := rawjson.String(raw)
	place, found := b.resolve(text)
	if !ok || !found {
		return
	}
	if slices.Contains(before, place) {
		m.isRecursive = true
		return
	}
	if slices.Contains(m.open, place) {
		return // the schema refers to itself without a value between
	}
	m.open = append(m.open, place)
	b.merge(m, source{place, b.findValue(place), false}, before, true)
}

// resolve returns the place that a reference within the document names.
func (b *builder) resolve(reference string) (place string, ok bool) {
	if pointer, isLocal := strings.CutPrefix(reference, "#"); isLocal && (pointer == "" || pointer[0] == '/') {
		if decoded, err := unescapeFragment(pointer); err == nil {
			pointer = decoded
		}
		return pointer, b.findValue(pointer) != nil
	}
	if b.anchors == nil {
		b.anchors = map[string]string{}
		b.collectAnchors("", b.document, 0)
	}
	place, ok = b.anchors[reference]
	return place, ok
}

// collectAnchors finds the names of schemas: $anchor and $id.
func (b *builder) collectAnchors(place string, raw []byte, level int) {
	if level > 2*maxSources || len(b.anchors) > maxFields {
		return
	}
	for it := rawjson.Object(raw); it.Next(); {
		name, isText := rawjson.String(it.Value)
		switch key := string(it.Key); {
		case isText && (key == "$anchor" || key == "$dynamicAnchor"):
			b.anchors["#"+name] = place
		case isText && (key == "$id" || key == "id"):
			b.anchors[name] = place
			b.anchors[name+"#"] = place
		case !isText:
			b.collectAnchors(place+"/"+pointerEscape.Replace(key), it.Value, level+1)
		}
	}
	for i, it := 0, rawjson.Array(raw); it.Next(); i++ {
		b.collectAnchors(place+"/"+tokenOf(i), it.Value, level+1)
	}
}

func (m *merged) addProperties(place string, raw []byte) {
	for it := rawjson.Object(raw); it.Next(); {
		name := string(it.Key)
		s := source{place + "/properties/" + pointerEscape.Replace(name), it.Value, false}
		if p := m.property(name); p != nil {
			p.sources = append(p.sources, s)
		} else if len(m.properties) < maxFields {
			m.properties = append(m.properties, property{name, []source{s}})
		}
	}
}

func (m *merged) property(name string) *property {
	for i := range m.properties {
		if m.properties[i].name == name {
			return &m.properties[i]
		}
	}
	return nil
}

func (m *merged) addRequired(raw []byte, decides bool) {
	for it := rawjson.Array(raw); decides && it.Next() && len(m.requiredNames) < maxFields; {
		if name, ok := rawjson.String(it.Value); ok && !m.required[name] {
			m.required[name] = true
			m.requiredNames = append(m.requiredNames, name)
		}
	}
}

// addVariants keeps the first list of variants that a value can choose from.
func (m *merged) addVariants(place string, raw []byte) {
	if m.variants != nil {
		return
	}
	for i, it := 0, rawjson.Array(raw); it.Next() && i < maxFields; i++ {
		m.variants = append(m.variants, source{place + "/" + tokenOf(i), it.Value, false})
	}
}

// dropNull makes null an extra value of the field in place of a type or a variant.
func (m *merged) dropNull(b *builder) {
	rest := m.variants[:0:0]
	for _, v := range m.variants {
		if t, _ := rawjson.String(rawjson.Lookup(v.raw, "type")); t == "null" || string(rawjson.Lookup(v.raw, "const")) == "null" {
			m.nullable = true
		} else {
			rest = append(rest, v)
		}
	}
	m.variants = rest
	if len(rest) == 1 && !m.isRecursive { // a variant and null
		nullable, only := m.nullable, rest[0]
		m.variants = nil
		before := m.open
		b.merge(m, only, before, true)
		m.nullable = nullable
	}
	for it := rawjson.Array(m.members["type"]); it.Next(); {
		m.nullable = m.nullable || string(it.Value) == `"null"`
	}
	if string(m.members["nullable"]) == "true" { // OpenAPI
		m.nullable = true
	}
}

// types returns the kinds that the type keyword allows, without null. If there is no type, other
// keywords suggest one.
func (m *merged) types() (all []Kind) {
	raw := m.members["type"]
	if name, ok := rawjson.String(raw); ok {
		raw = append(append([]byte{'['}, strconv.Quote(name)...), ']')
	}
	for it := rawjson.Array(raw); it.Next(); {
		name, _ := rawjson.String(it.Value)
		if kind := Kind(name); typeWords[kind] != "" && !slices.Contains(all, kind) {
			all = append(all, kind)
		} else if name == "null" {
			m.nullable = true
		}
	}
	if raw != nil {
		return all
	}
	switch {
	case len(m.properties) > 0 || m.members["additionalProperties"] != nil || m.patternProperties != nil || len(m.requiredNames) > 0:
		return []Kind{Object}
	case m.members["items"] != nil || m.members["prefixItems"] != nil:
		return []Kind{Array}
	case m.members["pattern"] != nil || m.members["maxLength"] != nil || m.members["minLength"] != nil || m.members["format"] != nil:
		return []Kind{Text}
	case m.members["minimum"] != nil || m.members["maximum"] != nil || m.members["multipleOf"] != nil:
		return []Kind{Number}
	}
	return nil
}

var typeWords = map[Kind]string{Text: "text", Number: "number", Integer: "integer", Boolean: "yes or no", Object: "object", Array: "list"}

// hasChildren reports whether the field has fields in it.
func (m *merged) hasChildren() bool {
	return len(m.variants) > 0 || slices.ContainsFunc(m.types(), func(k Kind) bool { return k == Object || k == Array })
}

// sourcesOf returns the schema in a keyword, or nil.
func (m *merged) sourcesOf(keyword string) []source {
	raw := m.members[keyword]
	if raw == nil || raw[0] == '[' {
		return nil
	}
	return []source{{m.owner[keyword].place + "/" + keyword, raw, false}}
}

// child returns the schema in a member of a keyword.
func (m *merged) child(keyword, token string, raw []byte) source {
	return source{m.owner[keyword].place + "/" + keyword + "/" + token, raw, false}
}

func (m *merged) text(keyword string) string {
	s, _ := rawjson.String(m.members[keyword])
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// number returns a keyword that is a small count, or 0.
func (m *merged) number(keyword string) int {
	n, _ := strconv.Atoi(string(m.members[keyword]))
	return max(0, min(n, maxFields))
}
