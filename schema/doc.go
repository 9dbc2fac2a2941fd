// Package schema turns Go types into JSON Schemas, checks raw JSON against JSON Schemas, and holds
// the one JSON encoding that agrees with both.
//
// # From a Go type
//
// [For] and [Of] infer a JSON Schema 2020-12 from a type, once per type. The result is
// deterministic (members in field order) and stays within what every LLM API accepts: an object
// always has properties, type is never an array, and $ref appears only where a type contains
// itself.
//
//	type In struct {
//		State string        `json:"state" doc:"Two-letter US state code" minLength:"2" maxLength:"2"`
//		Limit *int          `json:"limit" minimum:"1" default:"10"`
//		Wait  time.Duration `json:"wait,omitzero"`
//	}
//
// Names, omission and embedding follow the json tag. A field is required unless it is a pointer or
// is tagged omitempty or omitzero. Further tags, whose values are typed by the field:
//
//	doc, title                                        any field
//	default, example, examples                        any field: JSON, or plain text for strings, or a,b,c for slices; examples is a JSON array
//	enum:"a,b,c"                                      strings, numbers, and slices of them (applies to the items)
//	enumTitles:"A,B,C"                                beside enum, on strings and slices of them: oneOf/anyOf of titled constants
//	minimum maximum exclusiveMinimum exclusiveMaximum multipleOf   numbers
//	minLength maxLength pattern format                strings
//	minItems maxItems uniqueItems:"true"              slices, arrays
//	header:"Region"                                   x-mcp-header: strings, integers, booleans
//
// On a slice or array of scalars the tags of the element's kind apply to the elements.
//
// The tags of other libraries are understood, so that types can move here unchanged. A jsonschema
// tag of plain text is a description, as in github.com/google/jsonschema-go, which the official Go
// SDK uses. A list such as "required,description=Name of the city,enum=Berlin,enum=Paris" is
// translated, as mcp-go and github.com/invopop/jsonschema read it; required makes the property
// required, nullable allows null, and the other options are doc (description), title, default,
// example, enum and the keywords of numbers, strings and slices above. jsonschema_description is a
// description too. A tag that says anything else, or that does not fit the field's type, is an
// error that names the field. If a type has both kinds of tags, because two libraries
// use it, the tags of this package take precedence.
//
// What a type becomes:
//
//	string, bool, floats                 string, boolean, number
//	integers                             integer, bounded by the type's width (int64 and int are not, unsigned from 0)
//	struct                               object; additionalProperties false unless for output ([ForOutput])
//	slice, array                         array (arrays of a fixed length)
//	map[string]T                         object with additionalProperties T; integer and TextMarshaler keys likewise
//	*T                                   T, optional; with ForOutput, T or null
//	[]byte, [N]byte                      string, contentEncoding base64
//	time.Time                            string, format date-time
//	time.Duration                        string such as "1h30m"
//	encoding.TextMarshaler/Unmarshaler   string
//	any, json.RawMessage, json.Marshaler any value
//	a type with JSONSchema()             its result: a schema that stands by itself
//
// Members of structs embedded in T are T's own; an embedded map or jsontext.Value (json:",embed")
// takes up further members.
//
// Everything else (channels, functions, complex numbers, interfaces with methods, other map keys,
// two fields of one name) is an error that names the field's path: "In.Filter.Callback: func()
// cannot be expressed as JSON".
//
// # Validation
//
// [Schema.Validate] checks the raw bytes, by a checker that is compiled once and allocates nothing
// when the value is valid (but for the unevaluated keywords and $dynamicRef). The bytes must also
// be well-formed JSON in the sense of RFC 7493: valid UTF-8, no duplicate names, one value, at most
// 128 levels deep. Numbers are compared exactly, whatever their size; 1.0 is an integer. The
// format keyword is an annotation, in every dialect.
//
// Dialects: 2020-12 (also where $schema is absent), 2019-09, draft-07, draft-06 and draft-04. Any
// other is refused by name, and so is a $ref that leaves the document: nothing is ever fetched.
// Both, and schemas that exceed the bounds below or whose pattern Go's regexp cannot run, are
// reported by [Compile] as errors that wrap [ErrUnsupported].
//
// Bounds: a schema has at most 1 MiB of text, 128 levels and 8,192 subschemas;
// one validation costs at most 262,144 steps plus 4 for each byte of the value, and
// ends with [ErrTooComplex] there. A step is one subschema applied to one value; long strings,
// enumerations and patterns count as several. Explaining why a value is refused may cost as many
// steps again.
//
// # Encoding
//
// [Decode], [Encode] and [AppendEncode] hold the options that agree with the inference:
// case-sensitive names, [] and {} for nil slices and maps, durations as strings, sorted maps.
// [Form] makes the flat schemas of form elicitation.
//
// A Schema never changes; everything here is safe for concurrent use.
package schema
