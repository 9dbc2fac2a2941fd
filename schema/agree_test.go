package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// oracle is the library's form of a schema, as it is; format is an annotation.
func oracle(raw []byte) (*jsonschema.Schema, error) {
	t, err := parseTree(raw)
	if err != nil {
		return nil, err
	}
	doc, err := withoutFormat(t)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(outside{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := compilePattern(pattern)
		if err != nil {
			return nil, err
		}
		return re, nil
	})
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

const location = "schema:///root"

// outside refuses to load anything outside the document.
type outside struct{}

func (outside) Load(url string) (any, error) { return nil, outsideError(url) }

// plain is the value in the library's form. Numbers that math/big would take
// long over are refused.
func (t *tree) plain() (any, error) {
	switch t.kind {
	case '{':
		object := make(map[string]any, len(t.members))
		for _, m := range t.members {
			var err error
			if object[m.name], err = m.value.plain(); err != nil {
				return nil, err
			}
		}
		return object, nil
	case '[':
		array := make([]any, len(t.items))
		for i, item := range t.items {
			var err error
			if array[i], err = item.plain(); err != nil {
				return nil, err
			}
		}
		return array, nil
	case '"':
		return t.text, nil
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.kind == 't', nil
	}
	if p := parseDecimal(t.raw).point; len(t.raw) > maxExponent || p > maxExponent || p < -maxExponent {
		return nil, fmt.Errorf("the number %s has too many digits", describeValue(t.raw))
	}
	return json.Number(t.raw), nil
}

// withoutFormat is the document without the keyword format, which the library
// asserts in old dialects.
func withoutFormat(t *tree) (any, error) {
	doc, err := t.plain()
	if err != nil {
		return nil, err
	}
	v, err := newSurvey(t)
	if err != nil || doc == nil {
		return doc, nil
	}
	var strip func(t *tree, doc any)
	strip = func(t *tree, doc any) {
		switch doc := doc.(type) {
		case map[string]any:
			for _, m := range t.members {
				strip(m.value, doc[m.name])
			}
			if v.homes[t] != nil {
				delete(doc, "format")
			}
		case []any:
			for i := range doc {
				strip(t.items[i], doc[i])
			}
		}
	}
	strip(t, doc)
	return doc, nil
}

// The schemas that the own checker is compared by with the library. Each is
// tried on each of the values below.
var agreeSchemas = []string{
	`true`, `false`, `{}`,
	`{"type":"null"}`, `{"type":"boolean"}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":"string"}`, `{"type":"array"}`, `{"type":"object"}`,
	`{"type":["string","null"]}`, `{"type":["integer","object"]}`, `{"type":["integer","number"]}`,
	`{"const":1}`, `{"const":1.0}`, `{"const":"a"}`, `{"const":null}`, `{"const":false}`, `{"const":{"a":1,"b":[1,2]}}`, `{"const":[1.0,"x"]}`, `{"const":9007199254740993}`, `{"const":{}}`, `{"const":[]}`,
	`{"const":1e2}`, `{"const":0}`, `{"const":-0.0}`, `{"const":"\u00e9"}`, `{"const":"\ud83d\ude00"}`,
	`{"enum":["a","b",1,null,true]}`, `{"enum":[9007199254740992]}`, `{"enum":[]}`, `{"enum":[[],{},0]}`, `{"enum":["a","b"],"const":"b"}`, `{"const":"b","enum":["a"]}`,
	`{"enum":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r"]}`,
	`{"type":"string","enum":["é","x"]}`,
	`{"minLength":2}`, `{"maxLength":2}`, `{"minLength":1,"maxLength":1}`, `{"minLength":2.0}`, `{"maxLength":1e1}`,
	`{"pattern":"^a"}`, `{"pattern":"é"}`, `{"pattern":"^[^\\s]+$"}`, `{"pattern":"\\u0061"}`, `{"type":"string","pattern":"b$","minLength":2}`,
	`{"minimum":1}`, `{"maximum":1}`, `{"exclusiveMinimum":1}`, `{"exclusiveMaximum":1}`, `{"minimum":1.5,"maximum":2.5}`, `{"minimum":-1e3}`,
	`{"minimum":9007199254740993}`, `{"exclusiveMaximum":9007199254740993}`, `{"minimum":1e300}`, `{"maximum":-0}`, `{"minimum":0.1}`,
	`{"multipleOf":2}`, `{"multipleOf":0.1}`, `{"multipleOf":0.01}`, `{"multipleOf":1e2}`, `{"multipleOf":3,"type":"integer"}`, `{"multipleOf":9007199254740993}`,
	`{"items":{"type":"integer"}}`, `{"items":false}`, `{"items":true}`, `{"minItems":1}`, `{"maxItems":1}`, `{"uniqueItems":true}`, `{"uniqueItems":false}`,
	`{"prefixItems":[{"type":"integer"},{"type":"string"}]}`, `{"prefixItems":[true],"items":false}`, `{"prefixItems":[{"type":"integer"}],"items":{"type":"string"}}`,
	`{"contains":{"type":"integer"}}`, `{"contains":{"const":1},"minContains":2}`, `{"contains":true,"maxContains":1}`, `{"contains":{"type":"string"},"minContains":0}`, `{"minContains":3}`,
	`{"contains":{"type":"integer"},"items":{"type":["integer","string"]}}`,
	`{"properties":{"a":{"type":"integer"}}}`, `{"properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"required":["a","b"]}`, `{"required":[]}`,
	`{"properties":{"a":true},"additionalProperties":false}`, `{"properties":{"a":true},"additionalProperties":{"type":"string"}}`, `{"additionalProperties":false}`, `{"additionalProperties":{"type":"integer"}}`,
	`{"required":["a"],"additionalProperties":false}`, `{"required":["b"],"additionalProperties":{"type":"integer"},"properties":{"a":{}}}`,
	`{"patternProperties":{"^a":{"type":"integer"}}}`, `{"patternProperties":{"^a":{"type":"integer"},"b$":{"minimum":2}},"additionalProperties":false}`, `{"properties":{"a":{"minimum":1}},"patternProperties":{"a":{"type":"integer"}}}`,
	`{"patternProperties":{"a":false}}`,
	`{"propertyNames":{"maxLength":1}}`, `{"propertyNames":false}`, `{"propertyNames":{"enum":["a","b"]}}`, `{"propertyNames":{"pattern":"^[a-z]$"},"properties":{"a":{"type":"integer"}}}`,
	`{"minProperties":1}`, `{"maxProperties":1}`, `{"minProperties":2,"maxProperties":2}`,
	`{"dependentRequired":{"a":["b"]}}`, `{"dependentRequired":{"a":[],"b":["a","c"]}}`,
	`{"allOf":[{"type":"object"},{"required":["a"]}]}`, `{"anyOf":[{"type":"integer"},{"type":"string","minLength":2}]}`, `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `{"oneOf":[{"const":1},{"const":2}]}`, `{"oneOf":[true,true]}`, `{"oneOf":[false,true]}`,
	`{"anyOf":[{"required":["a"]},{"required":["b"]}],"type":"object"}`, `{"anyOf":[false]}`, `{"allOf":[true,false]}`,
	`{"not":{"type":"string"}}`, `{"not":{}}`, `{"not":false}`, `{"not":{"required":["a"]}}`, `{"not":{"not":{"type":"integer"}}}`,
	`{"if":{"type":"integer"},"then":{"minimum":2},"else":{"type":"string"}}`, `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"then":false}`, `{"if":true,"else":false}`, `{"if":false,"then":false}`, `{"if":{"properties":{"a":{"const":1}}},"else":{"required":["b"]}}`,
	`{"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n"}`, `{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n","minimum":1}}}`, `{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`,
	`{"$defs":{"t":{"properties":{"a":{"$ref":"#/$defs/t"},"b":{"type":"string"}},"additionalProperties":false}},"$ref":"#/$defs/t"}`,
	`{"$defs":{"a~b/c%d":{"type":"string"}},"$ref":"#/$defs/a~0b~1c%25d"}`, `{"properties":{"a":{"type":"integer"},"b":{"$ref":"#/properties/a"}}}`, `{"allOf":[{"minimum":1},{"$ref":"#/allOf/0"}]}`,
	`{"items":{"$ref":"#"},"type":["array","integer"]}`, `{"anyOf":[{"type":"integer"},{"items":{"$ref":"#"},"type":"array"}]}`,
	`{"type":"string","format":"email"}`, `{"title":"t","description":"d","default":1,"examples":[1],"deprecated":true,"readOnly":true,"$comment":"c","x-mine":{"type":4}}`,
	`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}},"required":["a"],"additionalProperties":false,"minProperties":1}`,
	// Rarer keywords.
	`{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"anyOf":[{"properties":{"a":{"const":1}}},{"properties":{"b":{"const":2}}}],"unevaluatedProperties":false}`,
	`{"oneOf":[{"required":["a"],"properties":{"a":true}},{"required":["c"],"properties":{"c":true}}],"unevaluatedProperties":false}`,
	`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":true}},"else":{"patternProperties":{"^c":true}},"unevaluatedProperties":false}`,
	`{"dependentSchemas":{"a":{"properties":{"a":true,"b":true}}},"unevaluatedProperties":{"type":"string"}}`, `{"not":{"properties":{"a":true},"required":["zz"]},"unevaluatedProperties":false}`,
	`{"allOf":[{"unevaluatedProperties":{"type":"integer"}}],"unevaluatedProperties":false}`, `{"additionalProperties":true,"unevaluatedProperties":false}`, `{"$ref":"#/$defs/o","$defs":{"o":{"properties":{"a":true}}},"unevaluatedProperties":false}`,
	`{"contains":{"type":"string"},"unevaluatedItems":false}`, `{"allOf":[{"prefixItems":[true,true]}],"unevaluatedItems":{"type":"integer"}}`, `{"anyOf":[{"prefixItems":[{"const":1}]},{"prefixItems":[true,{"const":"a"}]}],"unevaluatedItems":false}`,
	`{"items":true,"unevaluatedItems":false}`, `{"allOf":[{"contains":{"const":1}},{"contains":{"const":2}}],"unevaluatedItems":false}`, `{"unevaluatedItems":false}`, `{"properties":{"b":{"unevaluatedItems":false}}}`,
	`{"$id":"https://example.com/tree","$dynamicAnchor":"n","properties":{"a":{"$ref":"strict"}},"$defs":{"s":{"$id":"strict","$dynamicAnchor":"n","type":"object","properties":{"a":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}}}`,
	`{"$id":"https://example.com/list","$ref":"inner","$defs":{"i":{"$id":"inner","type":["array","integer"],"items":{"$dynamicRef":"#e"},"$defs":{"e":{"$dynamicAnchor":"e"}}},"e":{"$dynamicAnchor":"e","type":"integer"}}}`,
	`{"dependentSchemas":{"a":false}}`, `{"dependentSchemas":{"b":{"properties":{"b":{"type":"integer"}}}},"dependentRequired":{"b":["a"]}}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"integer"}],"additionalItems":{"type":"string"}}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","additionalItems":false}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[true],"unevaluatedItems":false}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","contains":{"type":"integer"},"unevaluatedItems":false}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"https://example.com/r","$recursiveAnchor":true,"properties":{"a":{"$ref":"s"}},"$defs":{"s":{"$id":"s","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"unevaluatedProperties":false}}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"required":["b"]},"c":["a"]}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"$id":"#x","type":"integer"}},"items":{"$ref":"#x"}}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","maximum":2,"exclusiveMaximum":true,"minimum":1,"exclusiveMinimum":false}`, `{"$schema":"http://json-schema.org/draft-04/schema#","items":[{"type":"integer"}],"additionalItems":false,"additionalProperties":false,"const":1}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://example.com/a","items":{"$ref":"#/definitions/i"},"definitions":{"i":{"id":"b","type":["integer","array"],"items":{"$ref":"a"}}}}`,
	`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"prefixItems":[true],"unevaluatedItems":false}`, `{"dependentSchemas":{"a":{"required":["b"]}}}`,
	`{"$anchor":"x","properties":{"a":{"$ref":"#x"}},"type":["object","integer"]}`, `{"$defs":{"i":{"$id":"urn:x:i","type":"integer"}},"$ref":"urn:x:i"}`,
	`{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"},"type":["array","integer"]}`,
	`{"unevaluatedProperties":{"type":"integer"},"anyOf":[{"properties":{"a":{"type":"string"}}},true]}`,
	// Other dialects.
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"integer","format":"email"}},"additionalProperties":false}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n","minimum":100}}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema","items":[{"type":"integer"}],"additionalItems":false}`, `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","if":{"type":"integer"},"then":{"minimum":2}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","contains":{"const":1},"minContains":2}`, `{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}`,
	`{"$schema":"http://json-schema.org/draft-06/schema#","if":{"type":"integer"},"then":{"minimum":2},"const":1}`, `{"$schema":"http://json-schema.org/draft-06/schema#","contains":{"type":"integer"},"propertyNames":{"maxLength":1},"exclusiveMinimum":1}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"integer"}],"dependentRequired":{"a":["b"]}}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n","minimum":2}}}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"items":{"$recursiveRef":"#"},"type":["array","integer"]}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"integer"}`, `{"$id":"https://example.com/s","type":"integer"}`,
}

var agreeValues = []string{
	`null`, `true`, `false`, `0`, `-0`, `-0.0`, `0e5`, `1`, `1.0`, `1e0`, `10e-1`, `1.5`, `2`, `2.5`, `3`, `-1`, `-1e3`, `100`, `1e2`, `0.1`, `0.3`, `0.30`, `12.34`, `123456789012345678901234567890`,
	`9007199254740992`, `9007199254740993`, `9007199254740993.0`, `9007199254740993e0`, `9007199254740994`, `18014398509481986`, `1e300`, `1e400`, `-1e400`, `1e-400`, `0.1e1`, `100e-2`,
	`""`, `"a"`, `"b"`, `"ab"`, `"abc"`, `"é"`, `"\u00e9"`, `"\u0061"`, `"😀"`, `"\ud83d\ude00"`, `"a b"`, `"\n"`, `"x\"y"`, `"r"`,
	`[]`, `[1]`, `[1,1]`, `[1,1.0]`, `[1,2]`, `[2,1,"x"]`, `["a"]`, `["a","b"]`, `[1,"a"]`, `[1,"a",2]`, `["x",1]`, `[null]`, `[[1],[1]]`, `[[1],[1.0]]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[{"a":1},{"a":2}]`, `[1.0,"x"]`, `["a","\u0061"]`, `[[[1]],2]`, `[[["x"]]]`,
	`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]`, `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,1e0]`, `[0,-0,false,null,"",{},[]]`,
	`{}`, `{"a":1}`, `{"a":"x"}`, `{"b":1}`, `{"b":"x"}`, `{"a":1,"b":2}`, `{"a":1,"b":"x"}`, `{"b":[1,2],"a":1}`, `{"a":1,"b":[1,2]}`, `{"a":1,"b":["x"]}`, `{"a":1.0,"b":[1,2.0]}`, `{"\u0061":1}`, `{"ab":1}`, `{"ab":"x","c":3}`, `{"a":{"a":{"a":{}}}}`, `{"a":{"a":{"a":{"c":1}}}}`, `{"a":{"b":"x","a":{"b":1}}}`, `{"a":null}`, `{"a":2,"c":1}`, `{"c":1}`, `{"é":1}`, `{"a":5,"b":5,"c":5}`, `{"a":101}`,
	` [ 1 , { "a" : [ ] } ] `,
}

func TestAgreesWithLibrary(t *testing.T) {
	for _, raw := range agreeSchemas {
		s := mustCompile(t, raw)
		other, err := oracle([]byte(raw))
		if err != nil {
			t.Fatalf("the library refuses %s: %v", raw, err)
		}
		for _, value := range agreeValues {
			compareWith(t, s, other, value)
		}
	}
}

func compareWith(t *testing.T, s *Schema, other *jsonschema.Schema, value string) {
	t.Helper()
	tree, err := parseTree([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := tree.plain()
	if err != nil {
		t.Fatal(err)
	}
	got, want := s.Validate([]byte(value)), other.Validate(plain)
	if (got == nil) != (want == nil) {
		t.Errorf("schema %s\nvalue %s\n got %v\nwant %v", s.JSON(), value, got, want)
	}
	var invalid *ValidationError
	if got != nil && (!errors.As(got, &invalid) || len(invalid.Issues) == 0 || invalid.Issues[0].Message == "") {
		t.Errorf("schema %s\nvalue %s\nerror without an issue: %v", s.JSON(), value, got)
	}
}

// Both refuse schemas that are against their metaschema.
func TestAgreesOnWrongSchemas(t *testing.T) {
	for _, raw := range []string{
		`1`, `"x"`, `null`, `[]`,
		`{"type":"text"}`, `{"type":1}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"type":[1]}`,
		`{"enum":1}`, `{"enum":"a"}`, `{"minLength":-1}`, `{"minLength":1.5}`, `{"maxLength":"1"}`, `{"pattern":1}`, `{"pattern":"("}`,
		`{"minimum":"1"}`, `{"multipleOf":0}`, `{"multipleOf":-1}`, `{"exclusiveMinimum":true}`,
		`{"items":1}`, `{"items":[{}]}`, `{"prefixItems":[]}`, `{"prefixItems":{}}`, `{"uniqueItems":1}`, `{"contains":1}`, `{"minContains":-1}`,
		`{"properties":[]}`, `{"properties":{"a":1}}`, `{"required":"a"}`, `{"required":[1]}`, `{"required":["a","a"]}`, `{"additionalProperties":1}`, `{"patternProperties":{"(":true}}`, `{"patternProperties":1}`, `{"propertyNames":1}`, `{"dependentRequired":1}`, `{"dependentRequired":{"a":"b"}}`,
		`{"allOf":[]}`, `{"anyOf":1}`, `{"oneOf":[1]}`, `{"not":1}`, `{"if":1}`, `{"$ref":1}`, `{"$ref":"#/$defs/none"}`, `{"$ref":"#none"}`, `{"$ref":"other.json"}`, `{"$defs":1}`, `{"$defs":{"a":1}}`, `{"$defs":{"a":{"type":"x"}}}`,
		`{"title":1}`, `{"description":1}`, `{"readOnly":1}`, `{"examples":1}`, `{"$comment":1}`, `{"$id":1}`, `{"$schema":1}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"text"}`, `{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":1}`,
		`{"unevaluatedProperties":1}`, `{"unevaluatedItems":[]}`, `{"dependentSchemas":1}`, `{"dependentSchemas":{"a":1}}`, `{"$anchor":"1"}`, `{"$anchor":1}`, `{"$dynamicAnchor":"a b"}`, `{"$dynamicRef":1}`, `{"$dynamicRef":"#none"}`,
		`{"$id":"a#b"}`, `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":1}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","additionalItems":1}`, `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":1}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":1}`, `{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":true}`, `{"$schema":"http://json-schema.org/draft-04/schema#","not":true}`, `{"$schema":"http://json-schema.org/draft-04/schema#","required":[]}`,
	} {
		if _, err := Compile([]byte(raw)); err == nil {
			t.Errorf("Compile accepts %s", raw)
		}
		if _, err := oracle([]byte(raw)); err == nil {
			t.Errorf("the library accepts %s", raw)
		}
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	s := mustCompile(t, `{"enum":[9007199254740993]}`)
	if err := s.Validate([]byte(`9007199254740993`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate([]byte(`9007199254740992`)); err == nil {
		t.Error("9007199254740992 was taken for 9007199254740993")
	}
	for _, c := range []struct {
		schema, value string
		valid         bool
	}{
		{`{"maximum":1e999999999}`, `1e999999998`, true},
		{`{"maximum":1e999999999}`, `1e1000000000`, false},
		{`{"minimum":0}`, `1e-999999999`, true},
		{`{"type":"integer"}`, `1e999999999`, true},
		{`{"type":"integer"}`, `1e-999999999`, false},
		{`{"type":"integer"}`, `99999999999999999999999999999999.0`, true},
		{`{"type":"integer"}`, `1e99999999999999999999999999`, true},
		{`{"multipleOf":3}`, `1e999999999`, false}, // not found out: refused
		{`{"const":1e400}`, `10e399`, true},
		{`{"const":1e400}`, `1e401`, false},
	} {
		if err := mustCompile(t, c.schema).Validate([]byte(c.value)); (err == nil) != c.valid {
			t.Errorf("%s on %s: %v", c.schema, c.value, err)
		}
	}
}

func TestDecimalCompare(t *testing.T) {
	ordered := []string{"-1e400", "-9007199254740993", "-9007199254740992", "-10", "-1.5", "-1.25", "-1e-400", "0", "1e-400", "0.00012", "0.0012", "0.1", "0.11", "1", "1.01", "1.1", "9.99", "10", "100.5", "9007199254740992", "9007199254740993", "1e300", "1e400"}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := parseDecimal([]byte(a)).compareTo(parseDecimal([]byte(b))); got != want {
				t.Errorf("compare(%s, %s) = %d", a, b, got)
			}
		}
	}
	same := []string{"100", "1e2", "100.0", "1.00E+2", "0.1e3", "1000e-1", "100.000"}
	for _, a := range same {
		for _, b := range same {
			if parseDecimal([]byte(a)).compareTo(parseDecimal([]byte(b))) != 0 {
				t.Errorf("%s and %s differ", a, b)
			}
		}
		if !parseDecimal([]byte(a)).isInteger() || newTree(t, a).hashTree() != newTree(t, "100").hashTree() {
			t.Errorf("%s is not 100", a)
		}
	}
}

func newTree(tb testing.TB, text string) *tree {
	tb.Helper()
	tree, err := parseTree([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}
