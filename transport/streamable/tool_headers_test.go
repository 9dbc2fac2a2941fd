package streamable

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tools returns a result of tools/list with the given properties in each tool's input schema.
func tools(properties map[string]string) json.RawMessage {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, `{"name":"`+name+`","x":1.0,"inputSchema":{"type":"object","properties":{`+properties[name]+`}}}`)
	}
	return json.RawMessage(`{"resultType":"complete","nextCursor":"n","tools":[` + strings.Join(list, ",") + `]}`)
}

func TestRejectedTools(t *testing.T) {
	list := map[string]string{
		"plain":     `"a":{"type":"string"}`,
		"valid":     `"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}`,
		"empty":     `"a":{"type":"string","x-mcp-header":""}`,
		"space":     `"a":{"type":"string","x-mcp-header":"a b"}`,
		"colon":     `"a":{"type":"string","x-mcp-header":"a:b"}`,
		"newline":   `"a":{"type":"string","x-mcp-header":"a\nb"}`,
		"non-ASCII": `"a":{"type":"string","x-mcp-header":"ä"}`,
		"number":    `"a":{"type":"number","x-mcp-header":"A"}`,
		"null":      `"a":{"type":"null","x-mcp-header":"A"}`,
		"control":   `"a":{"type":"string","x-mcp-header":"a\tb"}`,
		"same":      `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"A"}`,
		"object":    `"a":{"type":"object","x-mcp-header":"A"}`,
		"array":     `"a":{"type":"array","x-mcp-header":"A"}`,
		"twice":     `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`,
		"items":     `"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`,
		"one of":    `"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`,
	}
	var book toolHeaders
	clean, rejected := book.learnTools(tools(list))
	if len(rejected) != len(list)-2 {
		t.Errorf("%d tools are rejected, want %d: %v", len(rejected), len(list)-2, rejected)
	}
	want := tools(map[string]string{"plain": list["plain"], "valid": list["valid"]})
	if string(clean) != string(want) {
		t.Errorf("what is left is\n%s, want\n%s", clean, want)
	}
	for _, r := range rejected {
		if list[r.name] == "" || r.reason == nil {
			t.Errorf("rejected without a name or a reason: %v", r)
		}
	}
	if same, rejected := new(toolHeaders).learnTools(want); string(same) != string(want) || rejected != nil {
		t.Errorf("a list without faults became %s, %v", same, rejected)
	}
}

func TestParamFields(t *testing.T) {
	var book toolHeaders
	book.learnTools(tools(map[string]string{"t": `"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},` +
		`"b":{"type":"boolean","x-mcp-header":"B"},"o":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Deep"}}}`}))
	for arguments, want := range map[string]http.Header{
		`{}`:                               {},
		`{"s":null,"i":null}`:              {},
		`{"s":"x","i":42,"b":false}`:       {"Mcp-Param-S": {"x"}, "Mcp-Param-I": {"42"}, "Mcp-Param-B": {"false"}},
		`{"s":"","o":{"s":"line1\nl"}}`:    {"Mcp-Param-S": {""}, "Mcp-Param-Deep": {"=?base64?bGluZTEKbA==?="}},
		`{"i":42.0}`:                       {"Mcp-Param-I": {"42"}},
		`{"i":-1e2}`:                       {"Mcp-Param-I": {"-100"}},
		`{"i":9007199254740992}`:           {},
		`{"i":-9007199254740991}`:          {"Mcp-Param-I": {"-9007199254740991"}},
		`{"i":-9007199254740992}`:          {},
		`{"s":7,"b":"true","i":true}`:      {"Mcp-Param-S": {"7"}, "Mcp-Param-B": {"true"}, "Mcp-Param-I": {"true"}}, // the tool refuses these
		`{"s":[1],"b":{"a":1},"i":1.5}`:    {},
		`{"o":{"s":null}}`:                 {},
		`{"o":"s"}`:                        {},
		`{"s":" padded ","b":  true  }`:    {"Mcp-Param-S": {"=?base64?IHBhZGRlZCA=?="}, "Mcp-Param-B": {"true"}},
		`{"other":"x","s":"=?base64?x?="}`: {"Mcp-Param-S": {"=?base64?PT9iYXNlNjQ/eD89?="}},
	} {
		got := http.Header{}
		book.addFields(got, json.RawMessage(`{"name":"t","arguments":`+arguments+`}`))
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: got %v, want %v", arguments, got, want)
		}
	}
	rejecting := tools(map[string]string{"t": `"s":{"type":"string","x-mcp-header":""}`})
	for _, list := range []json.RawMessage{tools(map[string]string{"t": `"s":{"type":"string"}`}), rejecting} {
		book.learnTools(tools(map[string]string{"t": `"s":{"type":"string","x-mcp-header":"S"}`}))
		book.learnTools(list)
		got := http.Header{}
		if book.addFields(got, json.RawMessage(`{"name":"t","arguments":{"s":"x"}}`)); len(got) > 0 {
			t.Errorf("a tool without annotations any more: %v", got)
		}
	}
}

// The checks of the conformance suite's scenario http-custom-headers.
func TestConformanceFields(t *testing.T) {
	arguments := `{"region":"us-west1","priority":42,"verbose":false,"debug":true,"empty":"","method":"test-method","float":3.14159,` +
		`"nonASCII":"Hello, 世界","around":" padded ","leading":" us-west1","trailing":"us-west1 ","internal":"us west 1",` +
		`"control":"line1\nline2","crlf":"line1\r\nline2","tab":"\tindented","query":"SELECT 1"}`
	want := http.Header{
		"Mcp-Param-Region": {"us-west1"}, "Mcp-Param-Priority": {"42"}, "Mcp-Param-Verbose": {"false"}, "Mcp-Param-Debug": {"true"},
		"Mcp-Param-Empty": {""}, "Mcp-Param-Method": {"test-method"}, "Mcp-Param-Nonascii": {"=?base64?SGVsbG8sIOS4lueVjA==?="},
		"Mcp-Param-Around": {"=?base64?IHBhZGRlZCA=?="}, "Mcp-Param-Leading": {"=?base64?IHVzLXdlc3Qx?="},
		"Mcp-Param-Trailing": {"=?base64?dXMtd2VzdDEg?="}, "Mcp-Param-Internal": {"us west 1"},
		"Mcp-Param-Control": {"=?base64?bGluZTEKbGluZTI=?="}, "Mcp-Param-Crlf": {"=?base64?bGluZTENCmxpbmUy?="},
		"Mcp-Param-Tab": {"=?base64?CWluZGVudGVk?="},
	}
	properties := []string{`"float":{"type":"number"}`, `"query":{"type":"string"}`}
	for name, kind := range map[string]string{
		"region": "string", "priority": "integer", "verbose": "boolean", "debug": "boolean", "empty": "string", "method": "string",
		"nonASCII": "string", "around": "string", "leading": "string", "trailing": "string", "internal": "string",
		"control": "string", "crlf": "string", "tab": "string",
	} {
		properties = append(properties, `"`+name+`":{"type":"`+kind+`","x-mcp-header":"`+name+`"}`)
	}
	var book toolHeaders
	if _, rejected := book.learnTools(tools(map[string]string{"t": strings.Join(properties, ",")})); rejected != nil {
		t.Fatal(rejected)
	}
	got := http.Header{}
	book.addFields(got, json.RawMessage(`{"name":"t","arguments":`+arguments+`}`))
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParamBookIsBounded(t *testing.T) {
	var book toolHeaders
	for i := range maxHeaderTools + 2 {
		book.learnTools(tools(map[string]string{"t" + strconv.Itoa(i): `"s":{"type":"string","x-mcp-header":"S"}`}))
	}
	if len(book.tools) != maxHeaderTools {
		t.Errorf("%d tools are remembered", len(book.tools))
	}
	got := http.Header{}
	book.addFields(got, json.RawMessage(`{"name":"t`+strconv.Itoa(maxHeaderTools+1)+`","arguments":{"s":"x"}}`))
	if got.Get("Mcp-Param-S") != "x" {
		t.Errorf("the last tool is not remembered: %v", got)
	}
}
