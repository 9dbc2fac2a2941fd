package schema

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// The options follow the rules by which schemas are inferred. Only types that may hold a
// time.Duration use durationOptions: the decoder would look its functions up for every value.
var (
	plainOptions = json.JoinOptions(
		json.Deterministic(true),
		jsonv1.OmitEmptyWithLegacySemantics(true), // omitempty omits 0 and false, as in encoding/json
	)
	durationOptions = sync.OnceValue(func() json.Options {
		return json.JoinOptions(plainOptions,
			json.WithMarshalers(json.MarshalToFunc(encodeDuration)),
			json.WithUnmarshalers(json.UnmarshalFromFunc(decodeDuration)),
		)
	})
)

func encodeDuration(e *jsontext.Encoder, d time.Duration) error {
	return e.WriteToken(jsontext.String(d.String()))
}

func decodeDuration(d *jsontext.Decoder, to *time.Duration) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*to = 0
		return nil
	case '"':
		if *to, err = time.ParseDuration(token.String()); err == nil {
			return nil
		}
	}
	return &ValidationError{Issues: []Issue{{Message: fmt.Sprintf("must be a duration such as \"1h30m\" (got %s)", quoteText([]byte(token.String())))}}}
}

// Decode reads one JSON value into v, a pointer. Names match exactly, and null clears. Unknown
// members are ignored: [Schema.Validate] refuses them. The error is a [*ValidationError] of one
// issue if the value does not fit v. If data is not one well-formed JSON value, the error names the
// offset of the fault. Any other error means that v has a type that JSON cannot be decoded into.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v, optionsFor(reflect.TypeOf(v)))
	if err == nil {
		return nil
	}
	if plain, changed := plainIntegers(data); changed && json.Unmarshal(plain, v, optionsFor(reflect.TypeOf(v))) == nil {
		return nil
	}
	return decodeError(data, err)
}

func decodeError(data []byte, err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return &syntaxError{offset: int(syntactic.ByteOffset), message: syntactic.Err.Error()}
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return fmt.Errorf("schema: %w", err)
	}
	issue := Issue{Path: string(semantic.JSONPointer), fault: faultType}
	var bad *ValidationError
	var badTime *time.ParseError
	switch {
	case errors.As(err, &bad):
		issue.Message = bad.Error()
	case errors.As(err, &badTime):
		issue.Message = fmt.Sprintf("must be a time such as \"2006-01-02T15:04:05Z\" (got %s)", quoteText([]byte(badTime.Value)))
	case semantic.JSONKind == 0: // the Go type is at fault
		return fmt.Errorf("schema: %w", err)
	case semantic.Err != nil:
		issue.Message = "must be what a Go " + semantic.GoType.String() + " can hold: " + semantic.Err.Error()
	default:
		issue.Message = fmt.Sprintf("must be what a Go %s can hold (got a JSON %s)", semantic.GoType, semantic.JSONKind)
	}
	return &ValidationError{Issues: []Issue{issue}}
}

// Encode writes v as one JSON value, without spaces. A nil slice is [], a nil map is {}. Maps are
// sorted by name. A duration is a string, and bytes are base64.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, optionsFor(reflect.TypeOf(v)))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return b, nil
}

var encodeBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// AppendEncode appends the encoding of v, as [Encode] returns it, to dst. On an error it returns
// dst unchanged.
func AppendEncode(dst []byte, v any) ([]byte, error) {
	b := encodeBuffers.Get().(*bytes.Buffer)
	*b = *bytes.NewBuffer(dst) // the encoder appends to its bytes
	err := json.MarshalWrite(b, v, optionsFor(reflect.TypeOf(v)))
	encoded := b.Bytes()
	*b = bytes.Buffer{}
	encodeBuffers.Put(b)
	if err != nil {
		return dst, fmt.Errorf("schema: %w", err)
	}
	return encoded, nil
}

// optionsFor returns the options for values of type t.
func optionsFor(t reflect.Type) json.Options {
	if hasDuration(t) {
		return durationOptions()
	}
	return plainOptions
}

var durationTypes sync.Map // reflect.Type → bool

// hasDuration reports whether values of t may hold a time.Duration. An interface may hold any
// value, so it may hold one.
func hasDuration(t reflect.Type) bool {
	if t == nil {
		return false
	}
	if has, ok := durationTypes.Load(t); ok {
		return has.(bool)
	}
	has := searchDuration(t, make(map[reflect.Type]bool))
	durationTypes.Store(t, has)
	return has
}

func searchDuration(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch {
	case t == durationType:
		return true
	case t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String: // they hold no other values
		return false
	case seen[t]:
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return searchDuration(t.Elem(), seen)
	case reflect.Map:
		return searchDuration(t.Key(), seen) || searchDuration(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" && searchDuration(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
