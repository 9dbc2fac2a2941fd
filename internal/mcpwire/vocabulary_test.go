package mcpwire_test

import (
	"encoding/json"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

var tasks = mcp.Extension{
	ID: "io.modelcontextprotocol/tasks", ResultTypes: []mcp.ResultType{"task"}, ListenFilters: map[string]string{"taskIds": "notifications/tasks/status"},
	InputRequests: map[string]mcp.ClientCapabilities{"tasks/ask": {Roots: &mcp.RootsCapability{}}}, NameFields: map[string]string{"tasks/get": "taskId"},
}

func TestVocabulary(t *testing.T) {
	core, more := mcpwire.Vocabulary(nil), mcpwire.Vocabulary{tasks, {ID: "x/y", Settings: json.RawMessage(`{"a":1}`)}}
	for _, tt := range []struct {
		name       string
		core, more any
		want       [2]any
	}{
		{"complete", core.ResultType("complete"), more.ResultType("complete"), [2]any{true, true}},
		{"input_required", core.ResultType("input_required"), more.ResultType("input_required"), [2]any{true, true}},
		{"task", core.ResultType("task"), more.ResultType("task"), [2]any{false, true}},
		{"no type", core.ResultType(""), more.ResultType(""), [2]any{false, false}},
		{"name of a tool", core.NameField("tools/call"), more.NameField("tools/call"), [2]any{"name", "name"}},
		{"name of a prompt", core.NameField("prompts/get"), more.NameField("prompts/get"), [2]any{"name", "name"}},
		{"name of a resource", core.NameField("resources/read"), more.NameField("resources/read"), [2]any{"uri", "uri"}},
		{"name of a list", core.NameField("tools/list"), more.NameField("tools/list"), [2]any{"", ""}},
		{"name of a task", core.NameField("tasks/get"), more.NameField("tasks/get"), [2]any{"", "taskId"}},
	} {
		if got := [2]any{tt.core, tt.more}; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for want, v := range map[string]mcpwire.Vocabulary{"": core, "notifications/tasks/status": more} {
		if method, ok := v.ListenFilter("taskIds"); method != want || ok != (want != "") {
			t.Errorf("taskIds asks for %q, %v", method, ok)
		}
	}
	if core.Declare() != nil {
		t.Error("the core declares extensions")
	}
	raw, _ := json.Marshal(more.Declare())
	if string(raw) != `{"io.modelcontextprotocol/tasks":{},"x/y":{"a":1}}` {
		t.Errorf("declared: %s", raw)
	}
}

func TestVocabularyOfQuestions(t *testing.T) {
	core, more := mcpwire.Vocabulary(nil), mcpwire.Vocabulary{tasks}
	for _, tt := range []struct{ method, params, core, more string }{
		{"elicitation/create", `{"message":"m"}`, `{"elicitation":{}}`, ``}, {"elicitation/create", `{"mode":"form"}`, `{"elicitation":{}}`, ``},
		{"elicitation/create", `{"mode":"url"}`, `{"elicitation":{"url":{}}}`, ``}, {"elicitation/create", ``, `{"elicitation":{}}`, ``},
		{"sampling/createMessage", `{"messages":[],"maxTokens":1}`, `{"sampling":{}}`, ``}, {"sampling/createMessage", `{"tools":[{"name":"n","inputSchema":{}}]}`, `{"sampling":{"tools":{}}}`, ``},
		{"sampling/createMessage", `{"toolChoice":{"mode":"auto"}}`, `{"sampling":{"tools":{}}}`, ``}, {"sampling/createMessage", `{"includeContext":"none"}`, `{"sampling":{}}`, ``},
		{"sampling/createMessage", `{"includeContext":"allServers"}`, `{"sampling":{"context":{}}}`, ``}, {"sampling/createMessage", `{"includeContext":"thisServer","tools":[]}`, `{"sampling":{"tools":{},"context":{}}}`, ``},
		{"roots/list", ``, `{"roots":{}}`, ``}, {"tasks/ask", ``, `none`, `{"roots":{}}`}, {"tools/call", ``, `none`, `none`}, {"", ``, `none`, `none`},
	} {
		if tt.more == "" {
			tt.more = tt.core
		}
		for i, want := range []string{tt.core, tt.more} {
			needs, ok := []mcpwire.Vocabulary{core, more}[i].InputRequest(mcp.InputRequest{Method: tt.method, Params: []byte(tt.params)})
			got, _ := mcp.Encode(needs)
			if !ok {
				got = []byte("none")
			}
			if string(got) != want {
				t.Errorf("%s %s needs %s, want %s", tt.method, tt.params, got, want)
			}
		}
	}
}
