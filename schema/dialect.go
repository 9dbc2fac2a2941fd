package schema

import (
	"fmt"
	"net/url"
	"strings"
)

// dialect is the year or number of a JSON Schema draft.
type dialect int

const (
	draft4    dialect = 4
	draft6    dialect = 6
	draft7    dialect = 7
	draft2019 dialect = 2019
	draft2020 dialect = 2020
)

var dialects = map[string]dialect{
	"json-schema.org/draft-04/schema":      draft4,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft/2020-12/schema": draft2020,
}

// dialectOf reads $schema, whose absence means 2020-12.
func dialectOf(t *tree) (dialect, error) {
	uri := t.get("$schema")
	if uri == nil {
		return draft2020, nil
	}
	if uri.kind != '"' {
		return 0, fmt.Errorf("$schema: must be a string (got %s)", shown(uri.raw))
	}
	scheme, name, _ := strings.Cut(strings.TrimSuffix(uri.text, "#"), "://")
	if d, ok := dialects[name]; ok && (scheme == "http" || scheme == "https") {
		return d, nil
	}
	return 0, fmt.Errorf("%w: JSON Schema dialect %s is not known here; use 2020-12, 2019-09, draft-07, draft-06 or draft-04", ErrUnsupported, quoted([]byte(uri.text)))
}

// shape says where the subschemas of a keyword are.
type shape uint8

const (
	single shape = 1 << iota // the value is one
	listed                   // the items are
	named                    // the members' values are
)

// applicators are the keywords that hold subschemas, in any dialect.
var applicators = map[string]shape{
	"$defs": named, "definitions": named,
	"properties": named, "patternProperties": named, "additionalProperties": single, "propertyNames": single,
	"items": single | listed, "prefixItems": listed, "additionalItems": single, "contains": single,
	"allOf": listed, "anyOf": listed, "oneOf": listed, "not": single,
	"if": single, "then": single, "else": single,
	"dependencies": named, "dependentSchemas": named,
	"unevaluatedItems": single, "unevaluatedProperties": single, "contentSchema": single,
}

// subschemas are those that the keyword m holds.
func (m member) subschemas() []*tree {
	shape, v := applicators[m.name], m.value
	switch {
	case v.kind == '[' && shape&listed != 0:
		return v.items
	case shape&single != 0:
		return []*tree{v}
	case shape&named == 0:
		return nil
	}
	var all []*tree
	for _, sub := range v.members {
		if m.name != "dependencies" || sub.value.kind != '[' { // dependencies can list names instead
			all = append(all, sub.value)
		}
	}
	return all
}

// rare are the keywords that the checker leaves to the library.
var rare = map[string]bool{
	"$anchor": true, "$dynamicAnchor": true, "$dynamicRef": true, "$recursiveAnchor": true, "$recursiveRef": true,
	"$vocabulary": true, "additionalItems": true, "dependencies": true, "dependentSchemas": true,
	"unevaluatedItems": true, "unevaluatedProperties": true,
}

// survey walks the subschemas of a document before it is compiled.
type survey struct {
	root    *tree
	dialect dialect
	visited map[*tree]bool
	order   []*tree
	rare    bool // the library is needed
	hasID   bool
	outside string // a $ref that is not to this document, if there are no ids
}

func (v *survey) visit(t *tree) error {
	if v.visited[t] {
		return nil
	}
	v.visited[t] = true
	v.order = append(v.order, t)
	if len(v.order) > MaxSubschemas {
		return fmt.Errorf("%w: more than %d subschemas", ErrUnsupported, MaxSubschemas)
	}
	for _, m := range t.members {
		if err := v.keyword(t, m); err != nil {
			return err
		}
		for _, sub := range m.subschemas() {
			if err := v.visit(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *survey) keyword(t *tree, m member) error {
	switch {
	case m.name == "$schema" && t != v.root:
		v.rare = true
		_, err := dialectOf(t)
		return err
	case m.name == "$id" || m.name == "id" && v.dialect == draft4:
		v.hasID = true
		_, err := url.Parse(m.value.text)
		v.rare = v.rare || t != v.root || err != nil || strings.ContainsAny(m.value.text, `#\`)
	case m.name == "$ref" && m.value.kind == '"':
		return v.ref(m.value.text)
	case rare[m.name]:
		v.rare = true
	case m.name == "items" && m.value.kind == '[':
		v.rare = true
	}
	return nil
}

func (v *survey) ref(ref string) error {
	switch {
	case ref == "#" || strings.HasPrefix(ref, "#/"):
		target, err := v.root.resolve(ref)
		if err != nil {
			if v.hasID { // relative to another base, perhaps
				v.rare = true
				return nil
			}
			return err
		}
		return v.visit(target)
	case strings.HasPrefix(ref, "#"):
		v.rare = true
	default:
		v.rare, v.outside = true, ref
	}
	return nil
}

// resolve finds what a $ref of the form #/a/b points to.
func (t *tree) resolve(ref string) (*tree, error) {
	path, err := unescapeFragment(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, fmt.Errorf("$ref %s: %v", quoted([]byte(ref)), err)
	}
	for _, name := range path {
		next := t.get(name)
		if t.kind == '[' {
			next = t.index(name)
		}
		if next == nil {
			return nil, fmt.Errorf("$ref %s points to nothing", quoted([]byte(ref)))
		}
		t = next
	}
	return t, nil
}
