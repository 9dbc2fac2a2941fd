package streamable

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// tools makes the result of tools/list of the properties of each tool's input schema.
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
		"object":    `"a":{"type":"object","x-mcp-header":"A"}`,
		"array":     `"a":{"type":"array","x-mcp-header":"A"}`,
		"twice":     `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`,
		"items":     `"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`,
		"one of":    `"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`,
	}
	var book paramBook
	clean, rejected := book.learn(tools(list))
	if len(rejected) != len(list)-2 {
		t.Errorf("%d tools are rejected, want %d: %v", len(rejected), len(list)-2, rejected)
	}
	want := tools(map[string]string{"plain": list["plain"], "valid": list["valid"]})
	if string(clean) != string(want) {
		t.Errorf("what is left is\n%s, want\n%s", clean, want)
	}
	if same, rejected := new(paramBook).learn(want); string(same) != string(want) || rejected != nil {
		t.Errorf("a list without faults became %s, %v", same, rejected)
	}
}

func TestParamFields(t *testing.T) {
	var book paramBook
	book.learn(tools(map[string]string{"t": `"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},` +
		`"b":{"type":"boolean","x-mcp-header":"B"},"o":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Deep"}}}`}))
	for arguments, want := range map[string]http.Header{
		`{}`:                               {},
		`{"s":null,"i":null}`:              {},
		`{"s":"x","i":42,"b":false}`:       {"Mcp-Param-S": {"x"}, "Mcp-Param-I": {"42"}, "Mcp-Param-B": {"false"}},
		`{"s":"","o":{"s":"line1\nl"}}`:    {"Mcp-Param-S": {""}, "Mcp-Param-Deep": {"=?base64?bGluZTEKbA==?="}},
		`{"i":42.0}`:                       {"Mcp-Param-I": {"42"}},
		`{"i":-1e2}`:                       {"Mcp-Param-I": {"-100"}},
		`{"i":9007199254740992}`:           {},
		`{"i":1.5,"s":7,"b":"true"}`:       {},
		`{"s":" padded ","b":  true  }`:    {"Mcp-Param-S": {"=?base64?IHBhZGRlZCA=?="}, "Mcp-Param-B": {"true"}},
		`{"other":"x","s":"=?base64?x?="}`: {"Mcp-Param-S": {"=?base64?PT9iYXNlNjQ/eD89?="}},
	} {
		got := http.Header{}
		book.fields(got, json.RawMessage(`{"name":"t","arguments":`+arguments+`}`))
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: got %v, want %v", arguments, got, want)
		}
	}
	book.learn(tools(map[string]string{"t": `"s":{"type":"string"}`}))
	got := http.Header{}
	if book.fields(got, json.RawMessage(`{"name":"t","arguments":{"s":"x"}}`)); len(got) > 0 {
		t.Errorf("a tool without annotations any more: %v", got)
	}
}
