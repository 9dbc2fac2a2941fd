package server

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one field of a struct that is filled from text: an argument of a prompt or a variable of a URI.
type field struct {
	name, title, doc string
	required         bool
	enum             []string // what is allowed; nil is anything
	index            []int
	list             bool
	set              func(v reflect.Value, text string) error
}

// readFields reads the fields of a struct type, named by the tag. Embedded structs count as if they were spelled out.
func readFields(t reflect.Type, tag string) ([]field, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is no struct", t)
	}
	var all []field
	for _, sf := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(sf.Tag.Get(tag), ",")
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct || !sf.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		if slices.ContainsFunc(all, func(f field) bool { return f.name == name }) {
			return nil, fmt.Errorf("%s has two fields %q", t, name)
		}
		f, err := newField(sf, name, options)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func newField(sf reflect.StructField, name, options string) (f field, err error) {
	f = field{name: name, title: sf.Tag.Get("title"), doc: sf.Tag.Get("doc"), index: sf.Index}
	f.required = sf.Type.Kind() != reflect.Pointer && !slices.ContainsFunc(strings.Split(options, ","), func(o string) bool { return o == "omitempty" || o == "omitzero" })
	if enum := sf.Tag.Get("enum"); enum != "" {
		f.enum = strings.Split(enum, ",")
	}
	t := sf.Type
	if t.Kind() == reflect.Slice && !isText(t) {
		f.list, t = true, t.Elem()
	}
	f.set, err = textSetter(t)
	return f, err
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	durationType    = reflect.TypeFor[time.Duration]()
)

func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textUnmarshaler) }

// textSetter returns how a value of the type is read from text.
func textSetter(t reflect.Type) (func(reflect.Value, string) error, error) {
	switch {
	case t.Kind() == reflect.Pointer:
		set, err := textSetter(t.Elem())
		return func(v reflect.Value, text string) error {
			v.Set(reflect.New(t.Elem()))
			return set(v.Elem(), text)
		}, err
	case isText(t):
		return func(v reflect.Value, text string) error {
			return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		}, nil
	case t == durationType:
		return func(v reflect.Value, text string) error {
			d, err := time.ParseDuration(text)
			v.SetInt(int64(d))
			return expectError(err, `a duration such as "1h30m"`)
		}, nil
	}
	return scalarSetter(t)
}

func scalarSetter(t reflect.Type) (func(reflect.Value, string) error, error) {
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value, text string) error { v.SetString(text); return nil }, nil
	case reflect.Bool:
		return func(v reflect.Value, text string) error {
			b, err := strconv.ParseBool(text)
			v.SetBool(b)
			return expectError(err, "true or false")
		}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value, text string) error {
			n, err := strconv.ParseInt(text, 10, t.Bits())
			v.SetInt(n)
			return expectError(err, "an integer")
		}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(v reflect.Value, text string) error {
			n, err := strconv.ParseUint(text, 10, t.Bits())
			v.SetUint(n)
			return expectError(err, "an integer that is not negative")
		}, nil
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value, text string) error {
			n, err := strconv.ParseFloat(text, t.Bits())
			v.SetFloat(n)
			return expectError(err, "a number")
		}, nil
	}
	return nil, fmt.Errorf("%s cannot be read from text: use a string, a number, a bool or an encoding.TextUnmarshaler", t)
}

// expectError says what was expected, in place of strconv's words for programmers.
func expectError(err error, want string) error {
	if err != nil {
		return fmt.Errorf("must be %s", want)
	}
	return nil
}

// setFromText sets the field of the struct v.
func (f *field) setFromText(v reflect.Value, texts ...string) error {
	into := v.FieldByIndex(f.index)
	for _, text := range texts {
		if f.enum != nil && !slices.Contains(f.enum, text) {
			return fmt.Errorf("must be one of %s (got %q)", strings.Join(f.enum, ", "), text)
		}
		if !f.list {
			return f.set(into, text)
		}
		item := reflect.New(into.Type().Elem()).Elem()
		if err := f.set(item, text); err != nil {
			return err
		}
		into.Set(reflect.Append(into, item))
	}
	return nil
}
