package schema

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

// structField is a field of a struct, or of one embedded in it, that becomes a
// property.
type structField struct {
	reflect.StructField
	tag      jsonTag
	at       typePath
	depth    int  // how many embedded structs it is in
	optional bool // one of those is a pointer

	schemaTag schemaTag // of the jsonschema tags
}

// jsonTag is a parsed json tag.
type jsonTag struct {
	name   string // "" where the field's own is the name
	omit   bool   // omitempty, omitzero
	embed  bool
	quoted bool // the string option
}

func parseTag(tag string) jsonTag {
	name, rest, _ := strings.Cut(tag, ",")
	t := jsonTag{name: name}
	for _, option := range strings.Split(rest, ",") {
		switch option {
		case "omitempty", "omitzero":
			t.omit = true
		case "embed":
			t.embed = true
		case "string":
			t.quoted = true
		}
	}
	return t
}

// structSchema is the schema of a struct.
func (g *inference) structSchema(t reflect.Type, at typePath) (*object, error) {
	// The decoder knows which tags it refuses; it looks at a type's tags when it
	// first meets the type.
	if err := json.Unmarshal([]byte("{}"), reflect.New(t).Interface(), optionsFor(t)); err != nil {
		return nil, at.errorf("%w", decoderReason(err))
	}
	w := &fieldWalk{inference: g, open: make(map[reflect.Type]bool)}
	if err := w.collectFields(t, at, 0, false); err != nil {
		return nil, err
	}
	fields, err := w.dominantFields()
	if err != nil {
		return nil, err
	}
	properties, required := []namedSchema{}, []string{}
	for _, f := range fields {
		if f.schemaTag, err = parseSchemaTag(f.Tag); err != nil {
			return nil, f.at.errorf("%w", err)
		}
		o, err := g.fieldSchema(f)
		if err != nil {
			return nil, err
		}
		properties = append(properties, namedSchema{f.propertyName(), o})
		if at.root {
			g.fieldPaths[f.propertyName()] = f.at.path
		}
		if f.schemaTag.required || f.isAlwaysWritten() && f.Type.Kind() != reflect.Pointer {
			required = append(required, f.propertyName())
		}
	}
	o := typedObject("object").withEntry("properties", entry{named: properties})
	if len(required) > 0 {
		o.withRaw("required", string(appendTexts(nil, required)))
	}
	return o, g.setAdditional(o, w)
}

// decoderReason returns the decoder's error about a type, without its position.
func decoderReason(err error) error {
	if semantic, ok := err.(*json.SemanticError); ok && semantic.Err != nil {
		return semantic.Err
	}
	return err
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, text)
	}
	return append(b, ']')
}

// setAdditional sets additionalProperties: the values of an embedded map, else false for input;
// output stays open.
func (g *inference) setAdditional(o *object, w *fieldWalk) error {
	switch {
	case w.fallback == valueType:
		return nil
	case w.fallback != nil:
		values, err := g.schemaOf(w.fallback.Elem(), w.fallbackAt.elementPath("[]"))
		if err == nil {
			o.withEntry("additionalProperties", entry{object: values})
		}
		return err
	case !g.output && !g.form:
		o.withRaw("additionalProperties", "false")
	}
	return nil
}

// isAlwaysWritten reports whether [Encode] writes the field whatever its value.
func (f structField) isAlwaysWritten() bool { return !f.optional && !f.tag.omit }

func (f structField) propertyName() string {
	if f.tag.name != "" {
		return f.tag.name
	}
	return f.Name
}

// fieldWalk collects the fields of a struct and of those embedded in it.
type fieldWalk struct {
	inference  *inference
	open       map[reflect.Type]bool // embedded structs that the walk is inside of
	fields     []structField
	fallback   reflect.Type // of an embedded map or jsontext.Value
	fallbackAt typePath
}

func (w *fieldWalk) collectFields(t reflect.Type, at typePath, depth int, optional bool) error {
	if w.open[t] {
		return nil
	}
	w.open[t] = true
	defer delete(w.open, t)
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		tag := parseTag(f.Tag.Get("json"))
		if tag.embed || f.Anonymous && tag.name == "" {
			if err := w.collectEmbedded(f, at.fieldPath(f.Name), depth, optional); err != nil {
				return err
			}
			continue
		}
		w.fields = append(w.fields, structField{StructField: f, tag: tag, at: at.fieldPath(f.Name), depth: depth, optional: optional})
	}
	return nil
}

func (w *fieldWalk) collectEmbedded(f reflect.StructField, at typePath, depth int, optional bool) error {
	t, pointer := f.Type, f.Type.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	switch {
	case t == valueType || t.Kind() == reflect.Map:
		if w.fallback != nil {
			return at.errorf("only one map can take up further members")
		}
		w.fallback, w.fallbackAt = t, at
		return nil
	case t.Kind() != reflect.Struct:
		return at.errorf("%s cannot be embedded without a name", f.Type)
	case pointer && !f.IsExported():
		return at.errorf("a pointer to %s cannot be embedded, because decoding could not set it", t)
	}
	return w.collectFields(t, at, depth+1, optional || pointer)
}

// dominantFields keeps, of several fields with the same name, the least deeply embedded one. Two
// such fields are an error: encoding/json would drop both.
func (w *fieldWalk) dominantFields() ([]structField, error) {
	best := make(map[string]int)
	for i, f := range w.fields {
		j, ok := best[f.propertyName()]
		switch {
		case !ok || f.depth < w.fields[j].depth:
			best[f.propertyName()] = i
		case f.depth == w.fields[j].depth && (f.tag.name == "") == (w.fields[j].tag.name == ""):
			return nil, f.at.errorf("the name %q is also that of %s", f.propertyName(), w.fields[j].at.path)
		case f.depth == w.fields[j].depth && f.tag.name != "":
			best[f.propertyName()] = i
		}
	}
	var fields []structField
	for i, f := range w.fields {
		if best[f.propertyName()] == i {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// fieldSchema returns the schema of a field, including its tags.
func (g *inference) fieldSchema(f structField) (*object, error) {
	t, pointer := f.Type, f.Type.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	o, err := g.schemaOf(t, f.at)
	if err != nil {
		return nil, err
	}
	if f.tag.quoted {
		if o.typ != "integer" && o.typ != "number" {
			return nil, f.at.errorf("json option string applies to numbers, not to %s", f.Type)
		}
		o = typedObject("string")
	}
	tags := &fieldTags{inference: g, field: f, typ: t, target: o}
	if err := tags.applyTags(); err != nil {
		return nil, err
	}
	if f.schemaTag.required && g.output && !f.isAlwaysWritten() {
		return nil, f.at.errorf("jsonschema tag %q: a field that encoding may leave out cannot be required", f.Tag.Get("jsonschema"))
	}
	if f.schemaTag.nullable || pointer && g.output && !f.tag.omit {
		o = nullableSchema(o)
	}
	return o, nil
}
