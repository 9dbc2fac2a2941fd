package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

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

// lookup returns the values given for a tag: the text of the tag itself, else those that a
// jsonschema tag gives for it, or nil.
func (t *fieldTags) lookup(tag string) []string {
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

func (t *fieldTags) apply() error {
	if doc := t.lookup("doc"); doc != nil {
		t.target.lead("description", string(appendText(nil, doc[0])))
	}
	if title := t.lookup("title"); title != nil {
		t.target.lead("title", string(appendText(nil, title[0])))
	}
	steps := []func() error{t.keywords, t.enum, t.examples, t.header, t.fallback}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// scalar is the schema that the tags for strings and numbers apply to, with its
// Go type: the field's own, or that of its items.
func (t *fieldTags) scalar() (*object, reflect.Type) {
	if items := t.target.get("items"); t.target.typ == "array" && items != nil && items.object != nil {
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

func (t *fieldTags) keywords() error {
	for _, k := range keywordTags {
		text := t.lookup(k.name)
		if text == nil {
			continue
		}
		to := t.target
		if k.types != isArray {
			to, _ = t.scalar()
		}
		if kindOf(to) != k.types {
			return t.errorf(k.name, "applies to %s, not to %s", plurals[k.types], t.field.Type)
		}
		raw, err := k.value.raw(text[0], to)
		if err != nil {
			return t.errorf(k.name, "%v", err)
		}
		if err := t.narrower(k.name, raw, to); err != nil {
			return err
		}
		to.with(k.name, string(raw))
	}
	return nil
}

var plurals = map[kinds]string{isString: "strings", isNumber: "numbers", isArray: "slices and arrays"}

// raw is the tag's value as JSON.
func (f valueForm) raw(text string, to *object) ([]byte, error) {
	if f == textForm {
		return appendText(nil, text), nil
	}
	v, err := parse([]byte(text))
	switch {
	case err != nil:
	case f == boolForm && (v.kind == 't' || v.kind == 'f'):
		return v.raw, nil
	case f == lengthForm:
		_, err = length(v)
		return v.raw, err
	case f == numberForm && v.kind == '0' && (to.typ == "number" || parseDecimal(v.raw).integer()):
		return v.raw, nil
	}
	return nil, fmt.Errorf("must be %s", map[valueForm]string{
		lengthForm: "a whole number, not negative", boolForm: "true or false",
		numberForm: map[bool]string{true: "a whole number", false: "a number"}[to.typ == "integer"],
	}[f])
}

// narrower refuses bounds beyond those that the type has.
func (t *fieldTags) narrower(name string, raw []byte, to *object) error {
	old := to.get(name)
	if old == nil || name != "minimum" && name != "maximum" {
		return nil
	}
	c := newNumber(old.raw).compare(raw)
	if name == "minimum" && c < 0 || name == "maximum" && c > 0 {
		return t.errorf(name, "is beyond the %s %s of %s", name, old.raw, t.field.Type)
	}
	return nil
}

// value is the JSON of a value written in a tag, for the type: JSON, or, for
// what is a string in JSON, the text itself.
func (t *fieldTags) value(tag, text string, o *object, typ reflect.Type) ([]byte, error) {
	raw := []byte(text)
	switch {
	case o.typ == "string":
		raw = appendText(nil, text)
	case o.typ == "array" && !strings.HasPrefix(text, "["):
		var err error
		if raw, err = t.listed(tag, strings.Split(text, ",")); err != nil {
			return nil, err
		}
	}
	if _, err := parse(raw); err != nil {
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

// listed is the JSON array of the items.
func (t *fieldTags) listed(tag string, texts []string) ([]byte, error) {
	items, typ := t.scalar()
	raw := []byte{'['}
	for i, item := range texts {
		value, err := t.value(tag, item, items, typ)
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

func (t *fieldTags) enum() error {
	texts := t.lookupList("enum")
	titles, titled := t.field.Tag.Lookup("enumTitles")
	if texts == nil {
		if titled {
			return t.errorf("enumTitles", "there is no enum tag beside it")
		}
		return nil
	}
	to, typ := t.scalar()
	if kindOf(to)&(isString|isNumber) == 0 {
		return t.errorf("enum", "applies to strings, numbers and slices of them, not to %s", t.field.Type)
	}
	var values [][]byte
	for _, v := range texts {
		raw, err := t.value("enum", v, to, typ)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(values, func(o []byte) bool { return string(o) == string(raw) }) {
			return t.errorf("enum", "%s is in it twice", raw)
		}
		values = append(values, raw)
	}
	if titled {
		return t.titled(to, values, strings.Split(titles, ","))
	}
	to.with("enum", join(values))
	return nil
}

func join(values [][]byte) string {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return string(append(b, ']'))
}

// titled writes an enumeration as constants with titles, in the form that
// elicitation has for it: oneOf beside the type, but anyOf alone in items.
func (t *fieldTags) titled(to *object, values [][]byte, titles []string) error {
	if len(titles) != len(values) {
		return t.errorf("enumTitles", "there are %d titles for %d values", len(titles), len(values))
	}
	if to.typ != "string" {
		return t.errorf("enumTitles", "applies to strings and slices of them")
	}
	var options []*object
	for i, v := range values {
		options = append(options, new(object).with("const", string(v)).with("title", string(appendText(nil, titles[i]))))
	}
	if to == t.target {
		to.put("oneOf", entry{list: options})
		return nil
	}
	to.put("anyOf", entry{list: options})
	if t.inference.form {
		to.remove("type")
	}
	return nil
}

func (t *fieldTags) examples() error {
	var values [][]byte
	for _, text := range t.lookup("example") {
		raw, err := t.value("example", text, t.target, t.typ)
		if err != nil {
			return err
		}
		values = append(values, raw)
	}
	if text, ok := t.field.Tag.Lookup("examples"); ok {
		list, err := parse([]byte(text))
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
		t.target.with("examples", join(values))
	}
	return nil
}

// fallback writes the default, which has to be valid itself.
func (t *fieldTags) fallback() error {
	texts := t.lookup("default")
	if texts == nil {
		return nil
	}
	raw, err := t.defaultValue(texts)
	if err != nil {
		return err
	}
	if t.target.get("$ref") == nil && len(t.inference.definitions) == 0 {
		s, err := compile(t.target.append(nil))
		if err != nil {
			return t.field.at.errorf("%w", err)
		}
		if err := s.Validate(raw); err != nil {
			return t.errorf("default", "%v", err)
		}
	}
	t.target.with("default", string(raw))
	return nil
}

// defaultValue is the JSON of a default. A jsonschema tag gives the default of a slice item by item.
func (t *fieldTags) defaultValue(texts []string) ([]byte, error) {
	switch {
	case len(texts) == 1:
		return t.value("default", texts[0], t.target, t.typ)
	case t.target.typ == "array":
		return t.listed("default", texts)
	}
	return nil, t.errorf("default", "is given twice")
}

func (t *fieldTags) header() error {
	name, ok := t.field.Tag.Lookup("header")
	if !ok {
		return nil
	}
	if !isToken(name) {
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
	t.target.with("x-mcp-header", string(appendText(nil, name)))
	return nil
}
