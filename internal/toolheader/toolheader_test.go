package toolheader

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	got, err := List([]byte(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"x-mcp-header":{"type":"string"},
		"nested":{"type":"object","properties":{"deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N_1"}}},"flag":{"type":"boolean","x-mcp-header":"flag"}}},
		"items":{"type":"array","items":{"properties":{"x-mcp-header":{"type":"string"}}},"default":{"x-mcp-header":"no schema"}}
	},"anyOf":[{"required":["region"]}]}`))
	want := []Header{
		{"Region", []string{"region"}},
		{"N_1", []string{"nested", "deep", "n"}},
		{"flag", []string{"nested", "flag"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHeaderViolations(t *testing.T) {
	property := func(schema string) string { return `{"properties":{"a":` + schema + `}}` }
	const marked = `{"type":"string","x-mcp-header":"A"}`
	for _, c := range []struct{ raw, want string }{
		{property(`{"type":"string","x-mcp-header":""}`), `x-mcp-header of "a": "" is not an HTTP field name`},
		{property(`{"type":"string","x-mcp-header":"a b"}`), `is not an HTTP field name`},
		{property(`{"type":"string","x-mcp-header":"a\r\nb"}`), `is not an HTTP field name`},
		{property(`{"type":"string","x-mcp-header":"é"}`), `is not an HTTP field name`},
		{property(`{"type":"string","x-mcp-header":1}`), `is not an HTTP field name`},
		{property(`{"type":"number","x-mcp-header":"A"}`), `the type must be string, integer or boolean`},
		{property(`{"type":"object","x-mcp-header":"A"}`), `the type must be`},
		{property(`{"x-mcp-header":"A"}`), `the type must be`},
		{property(`{"type":["string","null"],"x-mcp-header":"A"}`), `the type must be`},
		{`{"type":"string","x-mcp-header":"A"}`, `the arguments themselves cannot be a header`},
		{`{"properties":{"a":` + marked + `,"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`, `x-mcp-header of "b.c": the name "a" is also that of "a"`},
		{property(`{"type":"array","items":` + marked + `}`), `x-mcp-header below items of "a"`},
		{property(`{"anyOf":[{"properties":{"b":` + marked + `}}]}`), `x-mcp-header below anyOf of "a": only properties that are reached through properties alone can be headers`},
		{property(`{"allOf":[` + marked + `]}`), `below allOf`},
		{property(`{"oneOf":[` + marked + `]}`), `below oneOf`},
		{property(`{"not":` + marked + `}`), `below not`},
		{property(`{"if":` + marked + `}`), `below if`},
		{property(`{"then":` + marked + `}`), `below then`},
		{property(`{"else":` + marked + `}`), `below else`},
		{property(`{"additionalProperties":` + marked + `}`), `below additionalProperties`},
		{property(`{"patternProperties":{"x":` + marked + `}}`), `below patternProperties`},
		{property(`{"prefixItems":[` + marked + `]}`), `below prefixItems`},
		{property(`{"contains":` + marked + `}`), `below contains`},
		{`{"$defs":{"d":` + marked + `},"properties":{"a":{"$ref":"#/$defs/d"}}}`, `below $defs`},
		{`{"definitions":{"d":{"properties":{"x":{"items":` + marked + `}}}}}`, `x-mcp-header below definitions`},
		{`{`, `malformed JSON`},
		{property(`{"type":"number","x\u002dmcp-header":"A"}`), `the type must be string, integer or boolean`},
		{strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), `nested 301 levels deep, more than 128`},
		{property(`{"type":"string","type":"number","x-mcp-header":"A"}`), `two members of one name`},
	} {
		if _, err := List([]byte(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.raw, err, c.want)
		}
	}
	for _, c := range "\"(),/:;<=>?@[\\]{} \x00\t\n\x1f\x7f" { // neither a delimiter nor a control character is part of a token
		name, err := json.Marshal("A" + string(c))
		if err != nil {
			t.Fatal(err)
		}
		if headers, err := List([]byte(property(`{"type":"string","x-mcp-header":` + string(name) + `}`))); err == nil {
			t.Errorf("%s is taken for a token: %v", name, headers)
		}
	}
}
