package schema

import (
	"fmt"
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

// keywordIn says which dialects know a keyword, from the first to the last; 0
// is no bound. What is not listed, all know. The rest is of no effect there.
var keywordIn = map[string][2]dialect{
	"id": {0, draft4}, "$id": {draft6, 0}, "examples": {draft6, 0}, "const": {draft6, 0}, "contains": {draft6, 0}, "propertyNames": {draft6, 0},
	"$comment": {draft7, 0}, "if": {draft7, 0}, "then": {draft7, 0}, "else": {draft7, 0},
	"readOnly": {draft7, 0}, "writeOnly": {draft7, 0}, "contentEncoding": {draft7, 0}, "contentMediaType": {draft7, 0},
	"$anchor": {draft2019, 0}, "$defs": {draft2019, 0}, "deprecated": {draft2019, 0}, "contentSchema": {draft2019, 0},
	"minContains": {draft2019, 0}, "maxContains": {draft2019, 0}, "dependentRequired": {draft2019, 0}, "dependentSchemas": {draft2019, 0},
	"unevaluatedItems": {draft2019, 0}, "unevaluatedProperties": {draft2019, 0},
	"$recursiveAnchor": {draft2019, draft2019}, "$recursiveRef": {draft2019, draft2019},
	"dependencies": {0, draft7}, "additionalItems": {0, draft2019},
	"prefixItems": {draft2020, 0}, "$dynamicAnchor": {draft2020, 0}, "$dynamicRef": {draft2020, 0},
}

// knows reports whether a keyword has an effect in the dialect.
func (d dialect) knows(keyword string) bool {
	in := keywordIn[keyword]
	return d >= in[0] && (in[1] == 0 || d <= in[1])
}

// idKeyword names a subschema.
func (d dialect) idKeyword() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// refAlone reports whether what stands beside a $ref counts for nothing.
func (d dialect) refAlone() bool { return d < draft2019 }

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
