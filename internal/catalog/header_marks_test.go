package catalog

import "testing"

func TestWithoutHeaders(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{`{"x-mcp-header":1,"anyOf":[{"x-mcp-header":"A"},true]}`, `{"anyOf":[{},true]}`},
		{`{"properties":{"x-mcp-header":{"x-mcp-header":"A"},"properties":{"x-mcp-header":2,"const":1}}}`, `{"properties":{"x-mcp-header":{},"properties":{"const":1}}}`},
		{`{"$defs":{"enum":{"x-mcp-header":"A"}},"enum":[{"x-mcp-header":"A"}],"default":{"x-mcp-header":"A"}}`, `{"$defs":{"enum":{}},"enum":[{"x-mcp-header":"A"}],"default":{"x-mcp-header":"A"}}`},
		{`{"dependencies":{"x-mcp-header":{"x-mcp-header":"A"},"b":["c"]}}`, `{"dependencies":{"x-mcp-header":{},"b":["c"]}}`},
		{`true`, `true`},
	} {
		if got := string(withoutHeaderMarks([]byte(tt.schema))); got != tt.want {
			t.Errorf("%s\nis    %s\n, want %s", tt.schema, got, tt.want)
		}
	}
}
