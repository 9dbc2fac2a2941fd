// Package subschema says which keywords of JSON Schema hold subschemas.
package subschema

// Shape is a set of the forms in which a keyword holds subschemas.
type Shape uint8

const (
	Single Shape = 1 << iota // the value is a schema
	Listed                   // the items of the value are schemas
	Named                    // the values of its members are schemas
)

// ShapeOf returns the shape of a keyword in any dialect. It is 0 for a keyword without subschemas.
func ShapeOf(keyword string) Shape {
	switch keyword {
	case "$defs", "definitions", "properties", "patternProperties", "dependencies", "dependentSchemas":
		return Named
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return Listed
	case "items":
		return Single | Listed
	case "additionalProperties", "propertyNames", "additionalItems", "contains", "not", "if", "then", "else",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		return Single
	}
	return 0
}
