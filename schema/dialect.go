package schema

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/subschema"
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

// dialectOf reads $schema. Without it, the dialect is 2020-12.
func dialectOf(t *tree) (dialect, error) {
	uri := t.getMember("$schema")
	if uri == nil {
		return draft2020, nil
	}
	if uri.kind != '"' {
		return 0, fmt.Errorf("$schema: must be a string (got %s)", describeValue(uri.raw))
	}
	scheme, name, _ := strings.Cut(strings.TrimSuffix(uri.text, "#"), "://")
	if d, ok := dialects[name]; ok && (scheme == "http" || scheme == "https") {
		return d, nil
	}
	return 0, fmt.Errorf("%w: JSON Schema dialect %s is not known here; use 2020-12, 2019-09, draft-07, draft-06 or draft-04", ErrDialect, quoteText([]byte(uri.text)))
}

// knowsKeyword reports whether a keyword has an effect in the dialect. Keywords that are missing
// here have an effect in all dialects.
func (d dialect) knowsKeyword(keyword string) bool {
	switch keyword {
	case "id":
		return d <= draft4
	case "dependencies":
		return d <= draft7
	case "additionalItems":
		return d <= draft2019
	case "$id", "examples", "const", "contains", "propertyNames":
		return d >= draft6
	case "$comment", "if", "then", "else", "readOnly", "writeOnly", "contentEncoding", "contentMediaType":
		return d >= draft7
	case "$anchor", "$defs", "deprecated", "contentSchema", "minContains", "maxContains", "dependentRequired", "dependentSchemas",
		"unevaluatedItems", "unevaluatedProperties":
		return d >= draft2019
	case "$recursiveAnchor", "$recursiveRef":
		return d == draft2019
	case "prefixItems", "$dynamicAnchor", "$dynamicRef":
		return d >= draft2020
	}
	return true
}

// idKeyword names a subschema.
func (d dialect) idKeyword() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// refAlone reports whether a $ref makes its schema ignore all other keywords.
func (d dialect) refAlone() bool { return d < draft2019 }

// listSubschemas returns the subschemas that the keyword m holds.
func (m member) listSubschemas() []*tree {
	shape, v := subschema.ShapeOf(m.name), m.value
	switch {
	case v.kind == '[' && shape&subschema.Listed != 0:
		return v.items
	case shape&subschema.Single != 0:
		return []*tree{v}
	case shape&subschema.Named == 0:
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
