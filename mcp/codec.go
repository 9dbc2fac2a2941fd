package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonOptions encode the protocol's types: deterministic, with nil slices and maps as empty ones.
// Decoding accepts duplicate names, which the first parser has already refused where they matter.
// Invalid UTF-8 and half surrogate pairs, which JavaScript writes when it cuts text, become U+FFFD
// instead of an error.
var jsonOptions = jsonv2.JoinOptions(jsonv2.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Encode returns the JSON of a value of this package's types.
func Encode(v any) (json.RawMessage, error) { return AppendEncode(nil, v) }

// AppendEncode appends the JSON of a value of this package's types to dst.
func AppendEncode(dst []byte, v any) ([]byte, error) {
	if a, ok := v.(jsonAppender); ok {
		return a.appendJSON(dst)
	}
	b := bytes.NewBuffer(dst)
	if err := jsonv2.MarshalWrite(b, v, jsonOptions); err != nil {
		return dst, err
	}
	return b.Bytes(), nil
}

// jsonAppender is implemented by types that are encoded by hand, for speed.
type jsonAppender interface {
	appendJSON([]byte) ([]byte, error)
}

// Decode decodes JSON into a value of this package's types. It ignores unknown members, as the
// protocol asks. Empty input means {}.
func Decode(raw []byte, v any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	return explainError(jsonv2.Unmarshal(raw, v, jsonOptions))
}

// explainError rewrites a decoding error for the sender of the JSON, without the names of Go types.
func explainError(err error) error {
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

// MarshalJSON implements [json.Marshaler].
func (c Content) MarshalJSON() ([]byte, error) { return c.appendJSON(nil) }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Content) UnmarshalJSON(raw []byte) error { return c.parseContent(raw) }

// MarshalJSON implements [json.Marshaler].
func (r ResourceContents) MarshalJSON() ([]byte, error) { return r.appendJSON(nil) }

// UnmarshalJSON implements [json.Unmarshaler].
func (r *ResourceContents) UnmarshalJSON(raw []byte) error { return r.parseContents(raw) }

// MarshalJSON implements [json.Marshaler]. One block becomes an object, several become an array.
func (s SamplingContent) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return s[0].appendJSON(nil)
	}
	return AppendEncode(nil, []Content(s))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *SamplingContent) UnmarshalJSON(raw []byte) error {
	if !rawjson.IsObject(raw) {
		return Decode(raw, (*[]Content)(s))
	}
	*s = make(SamplingContent, 1)
	return (*s)[0].parseContent(raw)
}
