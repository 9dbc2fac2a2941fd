package schema

import (
	"fmt"
	"reflect"
	"slices"
)

// Form returns the schema of a form that a user is asked to fill in (elicitation/create,
// requestedSchema). T is a struct of strings, numbers, booleans, and slices of strings with an enum
// tag; any other field is an error that names it. The schema has only keywords that the
// specification allows there.
func Form[T any]() (*Schema, error) {
	return cachedSchema(cacheKey{typ: reflect.TypeFor[T](), form: true})
}

// formKeywords returns the keywords that a field of this type can have in a form, besides the
// keywords of everyField. It returns nil for a type that forms do not have. The items of an array
// must be an enumeration.
func formKeywords(typ string) []string {
	switch typ {
	case "string":
		return []string{"format", "minLength", "maxLength", "enum", "oneOf"}
	case "number", "integer":
		return []string{"minimum", "maximum"}
	case "boolean":
		return []string{}
	case "array":
		return []string{"minItems", "maxItems", "items"}
	}
	return nil
}

var everyField = []string{"type", "title", "description", "default"}

var formFormats = []string{`"email"`, `"uri"`, `"date"`, `"date-time"`}

// checkForm checks that a form can have the schema inferred for its type.
func (g *inference) checkForm(root *object, t reflect.Type, at typePath) error {
	if t.Kind() != reflect.Struct || root.typ != "object" || root.getEntry("properties") == nil {
		return at.errorf("a form is made of a struct, not of %s", t)
	}
	if root.getEntry("additionalProperties") != nil {
		return at.errorf("a form cannot have an embedded map")
	}
	for _, p := range root.getEntry("properties").named {
		if err := formField(p.object); err != nil {
			return fmt.Errorf("%s: %w", g.fieldPaths[p.name], err)
		}
	}
	return nil
}

func formField(o *object) error {
	own := formKeywords(o.typ)
	if own == nil {
		return fmt.Errorf("a form can ask for strings, numbers, booleans and choices among strings only")
	}
	for _, e := range o.entries {
		if !slices.Contains(everyField, e.name) && !slices.Contains(own, e.name) {
			return fmt.Errorf("%s is not allowed in a form", e.name)
		}
	}
	if format := o.getEntry("format"); format != nil && !slices.Contains(formFormats, string(format.raw)) {
		return fmt.Errorf("format %s is not allowed in a form: only email, uri, date and date-time are", format.raw)
	}
	if o.typ != "array" {
		return nil
	}
	items := o.getEntry("items").object
	if items.typ != "string" || items.getEntry("enum") == nil && items.getEntry("anyOf") == nil {
		return fmt.Errorf("a slice in a form must be one of strings with an enum tag")
	}
	for _, e := range items.entries {
		if e.name != "type" && e.name != "enum" && e.name != "anyOf" {
			return fmt.Errorf("%s is not allowed for the choices of a form", e.name)
		}
	}
	return nil
}

// ApplyDefaults adds to content, a JSON object, the defaults of the schema's root properties that
// it lacks. The members of content keep their bytes.
func (s *Schema) ApplyDefaults(content []byte) ([]byte, error) {
	t, err := parseTree(content)
	if err != nil {
		return nil, err
	}
	if t.kind != '{' {
		return nil, &ValidationError{Issues: []Issue{{Message: fmt.Sprintf("must be an object (got %s)", describeValue(t.raw))}}}
	}
	filled := slices.Clone(t.raw[:len(t.raw)-1])
	count := len(t.members)
	for _, p := range s.Properties() {
		fallback := propertyDefault(s.tree, p.Name)
		if fallback == nil || t.getMember(p.Name) != nil {
			continue
		}
		if count > 0 {
			filled = append(filled, ',')
		}
		filled = append(append(appendText(filled, p.Name), ':'), fallback...)
		count++
	}
	return append(filled, '}'), nil
}

func propertyDefault(root *tree, name string) []byte {
	if fallback := root.getMember("properties").getMember(name).getMember("default"); fallback != nil {
		return fallback.raw
	}
	return nil
}
