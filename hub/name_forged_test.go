package hub

import (
	"encoding/json"
	"testing"
)

// No server says for the hub what a name is of, nor has a name that some readers take for another's.
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
		item, reason := newItem(&Upstream{name: c.server}, Tool, json.RawMessage(c.told), ToolRules{})
		if reason != "" || string(item.Definition) != c.want || string(item.LocalDefinition) != c.own {
			t.Errorf("%s is %s and %s, want %s and %s; %s", c.told, item.Definition, item.LocalDefinition, c.want, c.own, reason)
		}
	}
	if _, reason := newItem(&Upstream{name: "s"}, Tool, json.RawMessage(`{"name":"set","inputSchema":{},"name":"other__set"}`), ToolRules{}); reason == "" {
		t.Error("a tool with two names is offered")
	}
}
