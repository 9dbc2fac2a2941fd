package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// schemaTag is the translation of the struct tags that other libraries use: jsonschema
// (github.com/google/jsonschema-go, mcp-go, github.com/invopop/jsonschema) and
// jsonschema_description (the latter two). Its values have the syntax of this package's own tags.
type schemaTag struct {
	// values maps the name of a tag of this package, such as minLength, to the values given for it.
	// Only enum, example and default have more than one.
	values    map[string][]string
	described bool // by the option description
	required  bool
	nullable  bool
}

// schemaTagOptions are the options of a list that have a counterpart in this package, by their
// counterpart. doc is the description, and names both.
var schemaTagOptions = map[string]string{
	"description": "doc", "title": "title", "default": "default", "example": "example", "enum": "enum",
	"format": "format", "pattern": "pattern", "minLength": "minLength", "maxLength": "maxLength",
	"minimum": "minimum", "maximum": "maximum", "exclusiveMinimum": "exclusiveMinimum",
	"exclusiveMaximum": "exclusiveMaximum", "multipleOf": "multipleOf",
	"minItems": "minItems", "maxItems": "maxItems", "uniqueItems": "uniqueItems",
}

var (
	// optionName matches texts that jsonschema-go refuses as a description.
	optionName = lazyregexp.New(`^[^ \t\n]*=`)
	// optionSyntax matches an option with a value in a list.
	optionSyntax = lazyregexp.New(`^[A-Za-z_]+=`)
)

// parseSchemaTag translates the jsonschema and jsonschema_description tags of a field.
//
// A jsonschema tag is either a description or a list of options separated by commas. A backslash
// before a comma makes it part of a value. The tag is a list if one of these holds:
//   - it begins with a word and "=", which jsonschema-go refuses as a description;
//   - it begins with "required" or "nullable", and nothing else or another option follows;
//   - it has an element "enum=…", as mcp-go allows beside a description.
//
// Everything in a list must be an option that this package can express, or the words of the
// description beside enum.
func parseSchemaTag(tag reflect.StructTag) (schemaTag, error) {
	var s schemaTag
	if extras, ok := tag.Lookup("jsonschema_extras"); ok {
		return s, fmt.Errorf("jsonschema_extras tag %q: is not supported", extras)
	}
	if text, ok := tag.Lookup("jsonschema"); ok {
		if err := s.parseText(text); err != nil {
			return s, fmt.Errorf("jsonschema tag %q: %w", text, err)
		}
	}
	// As in those libraries, this tag counts less than the option and more than a plain
	// description.
	if text := strings.TrimSpace(tag.Get("jsonschema_description")); text != "" && !s.described {
		s.setValues("doc", text)
	}
	return s, nil
}

func (s *schemaTag) parseText(text string) error {
	elements := splitOptions(text)
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("is empty: want a description or a list of options")
	case text == "-":
		return fmt.Errorf(`cannot leave the field out: use json:"-"`)
	case !isOptionList(text, elements):
		s.setValues("doc", strings.TrimSpace(text))
		return nil
	}
	var words []string
	for _, element := range elements {
		switch element = strings.TrimSpace(element); {
		case element == "":
		case element == "required":
			s.required = true
		case element == "nullable":
			s.nullable = true
		case optionSyntax().MatchString(element):
			if err := s.addOption(element); err != nil {
				return err
			}
		default:
			words = append(words, element)
		}
	}
	if len(words) == 0 {
		return nil
	}
	if s.values["enum"] == nil || s.described {
		return fmt.Errorf(`%q is not an option; write \\, for a comma in a value`, words[0])
	}
	s.setValues("doc", strings.Join(words, ", "))
	return nil
}

func (s *schemaTag) addOption(element string) error {
	name, value, _ := strings.Cut(element, "=")
	own, ok := schemaTagOptions[name]
	switch isList := own == "enum" || own == "example" || own == "default"; {
	case !ok:
		return fmt.Errorf("the option %s is not supported", name)
	case isList:
		s.setValues(own, append(s.values[own], value)...)
	case s.values[own] != nil:
		return fmt.Errorf("%s is given twice", name)
	default:
		s.setValues(own, value)
		s.described = s.described || own == "doc"
	}
	return nil
}

func (s *schemaTag) setValues(name string, values ...string) {
	if s.values == nil {
		s.values = make(map[string][]string)
	}
	s.values[name] = values
}

func isOptionList(text string, elements []string) bool {
	isOption := func(element string) bool {
		element = strings.TrimSpace(element)
		return element == "required" || element == "nullable" || optionSyntax().MatchString(element)
	}
	isEnum := func(element string) bool { return strings.HasPrefix(strings.TrimSpace(element), "enum=") }
	return optionName().MatchString(text) || slices.ContainsFunc(elements, isEnum) ||
		isOption(elements[0]) && (len(elements) == 1 || isOption(elements[1]))
}

// splitOptions splits a list at the commas that no backslash precedes.
func splitOptions(text string) []string {
	var elements []string
	for _, part := range strings.Split(text, ",") {
		if last := len(elements) - 1; last >= 0 && strings.HasSuffix(elements[last], `\`) {
			elements[last] = strings.TrimSuffix(elements[last], `\`) + "," + part
		} else {
			elements = append(elements, part)
		}
	}
	return elements
}
