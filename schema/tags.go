package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/toolheader"
	"github.com/go-json-experiment/json"
)

// fieldTags applies a field's tags to its schema.
type fieldTags struct {
	inference *inference
	field     structField
	typ       reflect.Type // without pointers
	target    *object
}

// keywordTags are the tags that become keywords of the same name, and the
// types to which they apply. They are written in this order.
var keywordTags = []struct {
	name  string
	types kinds
	value valueForm
}{
	{"format", isString, textForm},
	{"pattern", isString, textForm},
	{"minLength", isString, lengthForm},
	{"maxLength", isString, lengthForm},
	{"minimum", isNumber, numberForm},
	{"maximum", isNumber, numberForm},
	{"exclusiveMinimum", isNumber, numberForm},
	{"exclusiveMaximum", isNumber, numberForm},
	{"multipleOf", isNumber, numberForm},
	{"minItems", isArray, lengthForm},
	{"maxItems", isArray, lengthForm},
	{"uniqueItems", isArray, boolForm},
}

type valueForm uint8

const (
	textForm valueForm = iota
	lengthForm
	numberForm
	boolForm
)

func (t *fieldTags) errorf(tag, format string, args ...any) error {
	text, own := t.field.Tag.Lookup(tag)
	if !own && t.field.schemaTag.values[tag] != nil {
		return t.field.at.errorf("jsonschema tag %q: %s: %s", t.field.Tag.Get("jsonschema"), tag, fmt.Sprintf(format, args...))
	}
	return t.field.at.errorf("%s tag %q: %s", tag, text, fmt.Sprintf(format, args...))
}

// lookupTag returns the values of a tag: the text of the tag itself, else the values of a
// jsonschema tag, or nil.
func (t *fieldTags) lookupTag(tag string) []string {
	if text, ok := t.field.Tag.Lookup(tag); ok {
		return []string{text}
	}
	return t.field.schemaTag.values[tag]
}

// lookupList is lookup for a tag that holds a list separated by commas.
func (t *fieldTags) lookupList(tag string) []string {
	if text, ok := t.field.Tag.Lookup(tag); ok {
		return strings.Split(text, ",")
	}
	return t.field.schemaTag.values[tag]
}

func (t *fieldTags) applyTags() error {
	if doc := t.lookupTag("doc"); doc != nil {
		t.target.setLeading("description", string(appendText(nil, doc[0])))
	}
	if title := t.lookupTag("title"); title != nil {
		t.target.setLeading("title", string(appendText(nil, title[0])))
	}
	steps := []func() error{t.applyKeywords, t.applyEnum, t.applyExamples, t.applyHeader, t.applyDefault}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// scalarTarget returns the schema to which the tags for strings and numbers apply, with its Go
// type: the schema of the field or, for a slice, of its items.
func (t *fieldTags) scalarTarget() (*object, reflect.Type) {
	if items := t.target.getEntry("items"); t.target.typ == "array" && items != nil && items.object != nil {
		return items.object, deref(t.typ.Elem())
	}
	return t.target, t.typ
}

func kindOf(o *object) kinds {
	switch i := slices.Index(kindNames[:], o.typ); {
	case i < 0:
		return 0
	case o.typ == "integer":
		return isNumber
	default:
		return 1 << i
	}
}

func (t *fieldTags) applyKeywords() error {
	for _, k := range keywordTags {
		text := t.lookupTag(k.name)
		if text == nil {
			continue
		}
		to := t.target
		if k.types != isArray {
			to, _ = t.scalarTarget()
		}
		if kindOf(to) != k.types {
			return t.errorf(k.name, "applies to %s, not to %s", plurals[k.types], t.field.Type)
		}
		raw, err := k.value.parseText(text[0], to)
		if err != nil {
			return t.errorf(k.name, "%v", err)
		}
		if err := t.checkNarrower(k.name, raw, to); err != nil {
			return err
		}
		to.withRaw(k.name, string(raw))
	}
	return nil
}

var plurals = map[kinds]string{isString: "strings", isNumber: "numbers", isArray: "slices and arrays"}

// parseText is the tag's value as JSON.
func (f valueForm) parseText(text string, to *object) ([]byte, error) {
	if f == textForm {
		return appendText(nil, text), nil
	}
	v, err := parseTree([]byte(text))
	switch {
	case err != nil:
	case f == boolForm && (v.kind == 't' || v.kind == 'f'):
		return v.raw, nil
	case f == lengthForm:
		_, err = parseLength(v)
		return v.raw, err
	case f == numberForm && v.kind == '0' && (to.typ == "number" || parseDecimal(v.raw).isInteger()):
		return v.raw, nil
	}
	return nil, fmt.Errorf("must be %s", map[valueForm]string{
		lengthForm: "a whole number, not negative", boolForm: "true or false",
		numberForm: map[bool]string{true: "a whole number", false: "a number"}[to.typ == "integer"],
	}[f])
}

// checkNarrower refuses bounds outside the bounds of the type.
func (t *fieldTags) checkNarrower(name string, raw []byte, to *object) error {
	old := to.getEntry(name)
	if old == nil || name != "minimum" && name != "maximum" {
		return nil
	}
	c := newNumber(old.raw).compareText(raw)
	if name == "minimum" && c < 0 || name == "maximum" && c > 0 {
		return t.errorf(name, "is beyond the %s %s of %s", name, old.raw, t.field.Type)
	}
	return nil
}

// parseValue returns the JSON of a value written in a tag. The text is JSON itself, unless the type
// is a string in JSON.
func (t *fieldTags) parseValue(tag, text string, o *object, typ reflect.Type) ([]byte, error) {
	raw := []byte(text)
	switch {
	case o.typ == "string":
		raw = appendText(nil, text)
	case o.typ == "array" && !strings.HasPrefix(text, "["):
		var err error
		if raw, err = t.parseItems(tag, strings.Split(text, ",")); err != nil {
			return nil, err
		}
	}
	if _, err := parseTree(raw); err != nil {
		return nil, t.errorf(tag, "%v", err)
	}
	if o.typ == "string" && t.field.tag.quoted {
		return raw, nil
	}
	if err := json.Unmarshal(raw, reflect.New(typ).Interface(), durationOptions()); err != nil {
		return nil, t.errorf(tag, "is not a %s", typ)
	}
	return raw, nil
}

// parseItems is the JSON array of the items.
func (t *fieldTags) parseItems(tag string, texts []string) ([]byte, error) {
	items, typ := t.scalarTarget()
	raw := []byte{'['}
	for i, item := range texts {
		value, err := t.parseValue(tag, item, items, typ)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, value...)
	}
	return append(raw, ']'), nil
}

func (t *fieldTags) applyEnum() error {
	texts := t.lookupList("enum")
	titles, titled := t.field.Tag.Lookup("enumTitles")
	if texts == nil {
		if titled {
			return t.errorf("enumTitles", "there is no enum tag beside it")
		}
		return nil
	}
	to, typ := t.scalarTarget()
	if kindOf(to)&(isString|isNumber) == 0 {
		return t.errorf("enum", "applies to strings, numbers and slices of them, not to %s", t.field.Type)
	}
	var values [][]byte
	for _, v := range texts {
		raw, err := t.parseValue("enum", v, to, typ)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(values, func(o []byte) bool { return string(o) == string(raw) }) {
			return t.errorf("enum", "%s is in it twice", raw)
		}
		values = append(values, raw)
	}
	if titled {
		return t.applyTitledEnum(to, values, strings.Split(titles, ","))
	}
	to.withRaw("enum", joinValues(values))
	return nil
}

func joinValues(values [][]byte) string {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return string(append(b, ']'))
}

// applyTitledEnum writes an enumeration as constants with titles, in the form that
// elicitation has for it: oneOf beside the type, but anyOf alone in items.
func (t *fieldTags) applyTitledEnum(to *object, values [][]byte, titles []string) error {
	if len(titles) != len(values) {
		return t.errorf("enumTitles", "there are %d titles for %d values", len(titles), len(values))
	}
	if to.typ != "string" {
		return t.errorf("enumTitles", "applies to strings and slices of them")
	}
	var options []*object
	for i, v := range values {
		options = append(options, new(object).withRaw("const", string(v)).withRaw("title", string(appendText(nil, titles[i]))))
	}
	if to == t.target {
		to.withEntry("oneOf", entry{list: options})
		return nil
	}
	to.withEntry("anyOf", entry{list: options})
	if t.inference.form {
		to.removeEntry("type")
	}
	return nil
}

func (t *fieldTags) applyExamples() error {
	var values [][]byte
	for _, text := range t.lookupTag("example") {
		raw, err := t.parseValue("example", text, t.target, t.typ)
		if err != nil {
			return err
		}
		values = append(values, raw)
	}
	if text, ok := t.field.Tag.Lookup("examples"); ok {
		list, err := parseTree([]byte(text))
		if err != nil || list.kind != '[' {
			return t.errorf("examples", "must be a JSON array")
		}
		for _, item := range list.items {
			if err := json.Unmarshal(item.raw, reflect.New(t.typ).Interface(), durationOptions()); err != nil {
				return t.errorf("examples", "%s is not a %s", item.raw, t.field.Type)
			}
			values = append(values, item.raw)
		}
	}
	if values != nil {
		t.target.withRaw("examples", joinValues(values))
	}
	return nil
}

// applyDefault writes the default, which has to be valid itself.
func (t *fieldTags) applyDefault() error {
	texts := t.lookupTag("default")
	if texts == nil {
		return nil
	}
	raw, err := t.defaultValue(texts)
	if err != nil {
		return err
	}
	if t.target.getEntry("$ref") == nil && len(t.inference.definitions) == 0 {
		s, err := compile(t.target.appendJSON(nil))
		if err != nil {
			return t.field.at.errorf("%w", err)
		}
		if err := s.Validate(raw); err != nil {
			return t.errorf("default", "%v", err)
		}
	}
	t.target.withRaw("default", string(raw))
	return nil
}

// defaultValue is the JSON of a default. A jsonschema tag gives the default of a slice item by
// item.
func (t *fieldTags) defaultValue(texts []string) ([]byte, error) {
	switch {
	case len(texts) == 1:
		return t.parseValue("default", texts[0], t.target, t.typ)
	case t.target.typ == "array":
		return t.parseItems("default", texts)
	}
	return nil, t.errorf("default", "is given twice")
}

func (t *fieldTags) applyHeader() error {
	name, ok := t.field.Tag.Lookup("header")
	if !ok {
		return nil
	}
	if !toolheader.IsName(name) {
		return t.errorf("header", "is not an HTTP field name")
	}
	switch {
	case !t.field.at.reachable:
		return t.errorf("header", "a header cannot come from within a slice, a map or a type that contains itself")
	case t.target.typ != "string" && t.target.typ != "integer" && t.target.typ != "boolean":
		return t.errorf("header", "applies to strings, integers and booleans, not to %s", t.field.Type)
	}
	lower := strings.ToLower(name)
	if other, ok := t.inference.headers[lower]; ok {
		return t.errorf("header", "is also that of %s", other)
	}
	t.inference.headers[lower] = t.field.at.path
	t.target.withRaw("x-mcp-header", string(appendText(nil, name)))
	return nil
}
