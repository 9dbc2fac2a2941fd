package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// describer is implemented by types that describe themselves. The method is
// called once per type, on the zero value, and returns a schema (an object, or
// true) that stands by itself: without $ref, $defs and $id.
type describer interface {
	JSONSchema() json.RawMessage
}

// For returns the schema of the values of T that [Decode] reads. See the package comment for the
// rules. The result is inferred once for each type.
func For[T any]() (*Schema, error) { return cachedSchema(cacheKey{typ: reflect.TypeFor[T]()}) }

// ForOutput returns the schema of the values of T that [Encode] writes. Objects stay open for
// members that a later version adds. Null is allowed (anyOf) where a nil pointer in a field, an
// item or a map becomes null. At the root, a nil pointer does not match.
func ForOutput[T any]() (*Schema, error) {
	return cachedSchema(cacheKey{typ: reflect.TypeFor[T](), output: true})
}

type cacheKey struct {
	typ          reflect.Type
	output, form bool
}

type inferred struct {
	schema *Schema
	err    error
}

var cache sync.Map // cacheKey → func() inferred

func cachedSchema(key cacheKey) (*Schema, error) {
	once, ok := cache.Load(key)
	if !ok {
		once, _ = cache.LoadOrStore(key, sync.OnceValue(func() inferred {
			s, err := inferSchema(key)
			return inferred{s, err}
		}))
	}
	r := once.(func() inferred)()
	return r.schema, r.err
}

func inferSchema(key cacheKey) (*Schema, error) {
	t := deref(key.typ)
	g := &inference{
		output: key.output, form: key.form,
		recursive: make(map[reflect.Type]bool), defs: make(map[reflect.Type]string), headers: make(map[string]string),
		fieldPaths: make(map[string]string),
	}
	g.findRecursive(t, nil, make(map[reflect.Type]bool))
	at := typePath{path: rootName(t), root: true, reachable: true}
	root, err := g.schemaOf(t, at)
	if err == nil && key.form {
		err = g.checkForm(root, t, at)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(g.definitions) > 0 {
		root.setEntry("$defs", entry{named: g.definitions})
	}
	s, err := compile(root.appendJSON(nil))
	if err != nil {
		return nil, fmt.Errorf("schema: %s: %w", at.path, err)
	}
	return s, nil
}

func rootName(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	return t.Kind().String()
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// inference makes the schema of one type.
type inference struct {
	output      bool
	form        bool
	recursive   map[reflect.Type]bool
	defs        map[reflect.Type]string // the name under $defs
	definitions []namedSchema
	headers     map[string]string // lower-case header → the field's path
	fieldPaths  map[string]string // of the root's properties
	count       int
}

// typePath is the place in the root type that is being looked at.
type typePath struct {
	path      string // "In.Filter.Callback"
	root      bool
	reachable bool // through properties alone, as x-mcp-header has to be
}

func (w typePath) fieldPath(name string) typePath {
	return typePath{path: w.path + "." + name, reachable: w.reachable}
}

func (w typePath) elementPath(suffix string) typePath { return typePath{path: w.path + suffix} }

func (w typePath) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{w.path}, args...)...)
}

var (
	durationType   = reflect.TypeFor[time.Duration]()
	timeType       = reflect.TypeFor[time.Time]()
	numberType     = reflect.TypeFor[json.Number]()
	rawType        = reflect.TypeFor[json.RawMessage]()
	valueType      = reflect.TypeFor[jsontext.Value]()
	describerType  = reflect.TypeFor[describer]()
	marshalers     = []reflect.Type{reflect.TypeFor[jsonv2.MarshalerTo](), reflect.TypeFor[json.Marshaler]()}
	unmarshalers   = []reflect.Type{reflect.TypeFor[jsonv2.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler]()}
	textMarshalers = []reflect.Type{reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender]()}
	textReaders    = []reflect.Type{reflect.TypeFor[encoding.TextUnmarshaler]()}
)

// implements looks at the methods of *t too.
func implements(t reflect.Type, any []reflect.Type) bool {
	if t.Name() != "" && t.PkgPath() == "" { // predeclared, and without methods
		return false
	}
	for _, i := range any {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// isOpaque reports whether methods of t write or read its JSON, so that nothing can be inferred
// from its kind. text reports whether they write or read text, which becomes a string.
func (g *inference) isOpaque(t reflect.Type) (opaque, text bool) {
	own, texts := unmarshalers, textReaders
	if g.output {
		own, texts = marshalers, textMarshalers
	}
	if implements(t, own) {
		return true, false
	}
	text = implements(t, texts)
	return text, text
}

// schemaOf is the schema of t, at a place.
func (g *inference) schemaOf(t reflect.Type, at typePath) (*object, error) {
	if g.count++; g.count > maxSubschemas {
		return nil, at.errorf("the schema has more than %d subschemas", maxSubschemas)
	}
	if name, ok := g.defs[t]; ok {
		return refTo(name), nil
	}
	if g.recursive[t] {
		return g.addDefinition(t, at)
	}
	return g.inlineSchema(t, at)
}

func (g *inference) inlineSchema(t reflect.Type, at typePath) (*object, error) {
	switch {
	case t.Kind() == reflect.Pointer: // before its methods, which are the element's
		return g.pointerSchema(t, at)
	case implements(t, []reflect.Type{describerType}):
		return describedSchema(t, at)
	case t == timeType:
		return typedObject("string").withRaw("format", `"date-time"`), nil
	case t == durationType:
		return typedObject("string"), nil
	case t == rawType || t == valueType:
		return new(object), nil
	case t == numberType:
		return nil, at.errorf("json.Number is a string to the decoder; use a number, or json.RawMessage for any value")
	}
	switch opaque, text := g.isOpaque(t); {
	case text:
		return typedObject("string"), nil
	case opaque:
		return new(object), nil
	}
	switch t.Kind() {
	case reflect.String:
		return typedObject("string"), nil
	case reflect.Bool:
		return typedObject("boolean"), nil
	case reflect.Float32, reflect.Float64:
		return typedObject("number"), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return g.integerSchema(t), nil
	case reflect.Slice, reflect.Array:
		return g.arraySchema(t, at)
	case reflect.Map:
		return g.mapSchema(t, at)
	case reflect.Struct:
		return g.structSchema(t, at)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return new(object), nil
		}
		return nil, at.errorf("%s is an interface with methods, which cannot be expressed as JSON", t)
	}
	return nil, at.errorf("%s cannot be expressed as JSON", t)
}

func describedSchema(t reflect.Type, at typePath) (*object, error) {
	raw := reflect.New(t).Interface().(describer).JSONSchema()
	tree, err := parseTree(raw)
	if err != nil {
		return nil, at.errorf("JSONSchema of %s: %w", t, err)
	}
	if tree.kind == 't' {
		return new(object), nil
	}
	if tree.kind != '{' {
		return nil, at.errorf("JSONSchema of %s: %w", t, mustBe("an object or true", tree))
	}
	o := new(object)
	for _, m := range tree.members {
		switch m.name {
		case "$ref", "$defs", "$id", "$schema":
			return nil, at.errorf("JSONSchema of %s: must not have %s", t, m.name)
		case "type":
			o.typ = m.value.text
		}
		o.setEntry(m.name, entry{raw: m.value.raw})
	}
	return o, nil
}

// integerSchema bounds an integer to the width of its type. JSON numbers do not carry 64 bits
// safely, so a 64-bit type gets only the bound of its sign.
func (g *inference) integerSchema(t reflect.Type) *object {
	o, bits := typedObject("integer"), t.Bits()
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr {
		o.withRaw("minimum", "0")
		if bits < 64 && t.Kind() != reflect.Uint && !(g.form && bits == 32) {
			o.withRaw("maximum", strconv.FormatUint(1<<bits-1, 10))
		}
		return o
	}
	if bits < 64 && t.Kind() != reflect.Int && !(g.form && bits == 32) {
		o.withRaw("minimum", strconv.FormatInt(-1<<(bits-1), 10))
		o.withRaw("maximum", strconv.FormatInt(1<<(bits-1)-1, 10))
	}
	return o
}

// pointerSchema is a pointer that is not a field: an item, a map's value.
func (g *inference) pointerSchema(t reflect.Type, at typePath) (*object, error) {
	o, err := g.schemaOf(t.Elem(), at)
	if err != nil || !g.output {
		return o, err
	}
	return nullableSchema(o), nil
}

func nullableSchema(o *object) *object {
	if len(o.entries) == 0 {
		return o // any value, null included
	}
	n := new(object)
	for _, name := range []string{"title", "description"} {
		if e := o.getEntry(name); e != nil {
			n.setEntry(name, *e)
			o.removeEntry(name)
		}
	}
	return n.withEntry("anyOf", entry{list: []*object{o, typedObject("null")}})
}

func (g *inference) arraySchema(t reflect.Type, at typePath) (*object, error) {
	if t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == "" {
		return typedObject("string").withRaw("contentEncoding", `"base64"`), nil
	}
	items, err := g.schemaOf(t.Elem(), at.elementPath("[]"))
	if err != nil {
		return nil, err
	}
	o := typedObject("array").withEntry("items", entry{object: items})
	if t.Kind() == reflect.Array {
		n := strconv.Itoa(t.Len())
		o.withRaw("minItems", n).withRaw("maxItems", n)
	}
	return o, nil
}

func (g *inference) mapSchema(t reflect.Type, at typePath) (*object, error) {
	_, text := g.isOpaque(t.Key())
	if kind := t.Key().Kind(); kind != reflect.String && !text && (kind < reflect.Int || kind > reflect.Uintptr) {
		return nil, at.errorf("%s cannot be expressed as JSON: its keys are neither strings nor integers", t)
	}
	values, err := g.schemaOf(t.Elem(), at.elementPath("[]"))
	if err != nil {
		return nil, err
	}
	o := typedObject("object").withEntry("properties", entry{named: []namedSchema{}})
	return o.withEntry("additionalProperties", entry{object: values}), nil
}

// addDefinition puts a type that contains itself under $defs. At the root, the
// schema is written out once more, because a root has to show its type.
func (g *inference) addDefinition(t reflect.Type, at typePath) (*object, error) {
	name := defName(t)
	for i := 2; g.hasDefinition(name); i++ {
		name = defName(t) + strconv.Itoa(i)
	}
	g.defs[t] = name
	index := len(g.definitions)
	g.definitions = append(g.definitions, namedSchema{name: name})
	o, err := g.inlineSchema(t, typePath{path: at.path})
	if err != nil {
		return nil, err
	}
	g.definitions[index].object = o
	if at.root {
		return o.clone(), nil
	}
	return refTo(name), nil
}

func (g *inference) hasDefinition(name string) bool {
	for _, d := range g.definitions {
		if d.name == name {
			return true
		}
	}
	return false
}

// defName returns the type's name, without characters that a $ref would have to escape.
func defName(t reflect.Type) string {
	name := []rune(t.Name())
	for i, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			name[i] = '_'
		}
	}
	return string(name)
}

func refTo(name string) *object {
	return new(object).withRaw("$ref", strconv.Quote("#/$defs/"+name))
}

// findRecursive marks a type on each cycle of types, so that writing out the other types
// terminates. open holds the named types that contain t.
func (g *inference) findRecursive(t reflect.Type, open []reflect.Type, done map[reflect.Type]bool) {
	if slices.Contains(open, t) {
		g.recursive[t] = true
		return
	}
	opaque, _ := g.isOpaque(t)
	if done[t] || opaque || t == timeType || implements(t, []reflect.Type{describerType}) {
		return
	}
	if t.Name() != "" {
		open = append(open, t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		g.findRecursive(t.Elem(), open, done)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous) {
				g.findRecursive(f.Type, open, done)
			}
		}
	}
	done[t] = true
}
