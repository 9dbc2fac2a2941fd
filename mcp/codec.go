package mcp

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// options are those of the protocol's own types: deterministic, nil slices and maps written as empty ones, and lenient
// towards duplicate names, of which the first parser that cares has complained. Text that is no UTF-8, or half a surrogate
// pair, as JavaScript writes cut text, becomes U+FFFD rather than an error.
var options = jsonv2.JoinOptions(jsonv2.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Encode returns the JSON of a value of this package's types.
func Encode(v any) (json.RawMessage, error) { return AppendEncode(nil, v) }

// AppendEncode appends the JSON of a value of this package's types.
func AppendEncode(dst []byte, v any) ([]byte, error) {
	if a, ok := v.(interface {
		AppendJSON([]byte) ([]byte, error)
	}); ok {
		return a.AppendJSON(dst)
	}
	w := appendWriter{dst}
	if err := jsonv2.MarshalWrite(&w, v, options); err != nil {
		return dst, err
	}
	return w.b, nil
}

type appendWriter struct{ b []byte }

func (w *appendWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// Decode reads JSON into a value of this package's types. Unknown members are ignored, as the protocol asks.
func Decode(raw []byte, v any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	return readable(jsonv2.Unmarshal(raw, v, options))
}

// readable words what does not fit for whoever sent it, without the names of Go types.
func readable(err error) error {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) || semantic.JSONKind == 0 {
		return err
	}
	where := string(semantic.JSONPointer)
	if where == "" {
		where = "the value"
	}
	if semantic.Err != nil {
		return fmt.Errorf("%s: %w", where, semantic.Err)
	}
	return fmt.Errorf("%s must not be a JSON %s", where, semantic.JSONKind)
}

// The JSON of content is written by hand, for encoding/json and for its successor.

type appender interface {
	AppendJSON([]byte) ([]byte, error)
}

func marshalTo(enc *jsontext.Encoder, v appender) error {
	raw, err := v.AppendJSON(enc.AvailableBuffer())
	if err != nil {
		return err
	}
	return enc.WriteValue(raw)
}

func unmarshalFrom(dec *jsontext.Decoder, parse func([]byte) error) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return parse(raw)
}

// MarshalJSON implements [json.Marshaler].
func (c Content) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSONTo writes the content to an encoder.
func (c *Content) MarshalJSONTo(enc *jsontext.Encoder) error { return marshalTo(enc, c) }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Content) UnmarshalJSON(raw []byte) error { return c.parse(raw) }

// UnmarshalJSONFrom reads the content from a decoder.
func (c *Content) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, c.parse) }

// MarshalJSON implements [json.Marshaler].
func (r ResourceContents) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// MarshalJSONTo writes the contents to an encoder.
func (r *ResourceContents) MarshalJSONTo(enc *jsontext.Encoder) error { return marshalTo(enc, r) }

// UnmarshalJSON implements [json.Unmarshaler].
func (r *ResourceContents) UnmarshalJSON(raw []byte) error { return r.parse(raw) }

// UnmarshalJSONFrom reads the contents from a decoder.
func (r *ResourceContents) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(dec, r.parse)
}

// MarshalJSON implements [json.Marshaler]: one block as an object, several as an array.
func (s SamplingContent) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return s[0].AppendJSON(nil)
	}
	return AppendEncode(nil, []Content(s))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *SamplingContent) UnmarshalJSON(raw []byte) error {
	if !rawjson.IsObject(raw) {
		return Decode(raw, (*[]Content)(s))
	}
	*s = make(SamplingContent, 1)
	return (*s)[0].parse(raw)
}
