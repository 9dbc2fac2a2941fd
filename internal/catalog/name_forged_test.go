package catalog

import (
	"encoding/json"
	"testing"
)

// namedUpstream is an upstream with that name.
type namedUpstream string

func (u namedUpstream) Name() string { return string(u) }

// keepTool changes no tool.
func keepTool(string) ToolChange { return ToolChange{} }

// A server can forge neither the hub's _meta keys nor a name that some readers take for another
// one.
func TestForgedOrigins(t *testing.T) {
	mark := wireName("my.server", "set")
	for _, c := range []struct{ server, told, want, own string }{
		{"s", `{"name":"set","inputSchema":{}}`, `{"name":"s__set","inputSchema":{}}`, `{"name":"set","inputSchema":{}}`},
		{"s", `{"name":"set","inputSchema":{},"_meta":{"x":1,"dowel\/server":"a","dowel/name":"b"}}`, `{"name":"s__set","inputSchema":{},"_meta":{"x":1}}`,
			`{"name":"set","inputSchema":{},"_meta":{"x":1}}`},
		{"s", `{"_meta":{"dowel/name":"b"},"name":"set","inputSchema":{},"_meta":{}}`, `{"name":"s__set","inputSchema":{}}`, `{"name":"set","inputSchema":{}}`},
		{"my.server", `{"name":"set","inputSchema":{},"_meta":{"x":1,"dowel/server":"a"}}`,
			`{"name":"` + mark + `","inputSchema":{},"_meta":{"x":1,"dowel/server":"my.server","dowel/name":"set"}}`,
			`{"name":"set","inputSchema":{},"_meta":{"x":1}}`},
		{"my.server", `{"name":"set","inputSchema":{}}`, `{"name":"` + mark + `","inputSchema":{},"_meta":{"dowel/server":"my.server","dowel/name":"set"}}`,
			`{"name":"set","inputSchema":{}}`},
	} {
		item, reason := NewItem(namedUpstream(c.server), Tool, json.RawMessage(c.told), keepTool)
		if reason != "" || string(item.Definition) != c.want || string(item.LocalDefinition) != c.own {
			t.Errorf("%s is %s and %s, want %s and %s; %s", c.told, item.Definition, item.LocalDefinition, c.want, c.own, reason)
		}
	}
	if _, reason := NewItem(namedUpstream("s"), Tool, json.RawMessage(`{"name":"set","inputSchema":{},"name":"other__set"}`), keepTool); reason == "" {
		t.Error("a tool with two names is offered")
	}
}

// The definition of a resource tells its server, whatever the server itself says.
func TestServersOfResources(t *testing.T) {
	for told, want := range map[string]string{
		`{"uri":"x:y","name":"y"}`:                                        `{"uri":"x:y","name":"y","_meta":{"dowel/server":"my.server"}}`,
		`{"uri":"x:y","name":"y","_meta":{"a":1,"dowel/server":"other"}}`: `{"uri":"x:y","name":"y","_meta":{"a":1,"dowel/server":"my.server"}}`,
	} {
		item, reason := NewItem(namedUpstream("my.server"), Resource, json.RawMessage(told), keepTool)
		if got := item.DefinitionWithServer(); reason != "" || string(got) != want {
			t.Errorf("%s is %s, want %s; %s", told, got, want, reason)
		}
	}
}
