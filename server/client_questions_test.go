package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func TestSampleRefusesWhatTheProtocolDoes(t *testing.T) {
	user := func(blocks ...mcp.Content) mcp.SamplingMessage {
		return mcp.SamplingMessage{Role: mcp.RoleUser, Content: blocks}
	}
	model := func(blocks ...mcp.Content) mcp.SamplingMessage {
		return mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: blocks}
	}
	hi := mcp.Text("hi")
	use := func(id string) mcp.Content { return mcp.UseTool(id, "look", json.RawMessage(`{}`)) }
	result := func(id string) mcp.Content { return mcp.ToolResult(id, hi) }
	for _, c := range []struct {
		name     string
		messages []mcp.SamplingMessage
		want     string
	}{
		{"plain", []mcp.SamplingMessage{user(hi, hi), model(hi)}, ""},
		{"tools", []mcp.SamplingMessage{user(hi), model(hi, use("1"), use("2")), user(result("2"), result("1")), model(hi)}, ""},
		{"text before results", []mcp.SamplingMessage{model(use("1")), user(hi, result("1"))}, "messages[1].content[0]: text beside tool results"},
		{"image behind results", []mcp.SamplingMessage{model(use("1")), user(result("1"), mcp.Image(nil, "image/png"))}, "messages[1].content[1]: image beside tool results"},
		{"a result is missing", []mcp.SamplingMessage{model(use("1"), use("2")), user(result("1"))}, `messages[0].content[1]: the use \"2\" of the tool look has no result`},
		{"no results", []mcp.SamplingMessage{user(hi), model(use("1"))}, `messages[1].content[0]: the use \"1\"`},
		{"results of the model", []mcp.SamplingMessage{model(use("1")), model(result("1"))}, `messages[0].content[0]: the use \"1\"`},
		{"results too late", []mcp.SamplingMessage{model(use("1")), user(hi), user(result("1"))}, `messages[0].content[0]: the use \"1\"`},
		{"a result that nothing uses", []mcp.SamplingMessage{user(result("1"))}, `messages[0].content[0]: the result of \"1\" has no use`},
		{"a result of another use", []mcp.SamplingMessage{model(use("1")), user(result("1"), result("2"))}, `messages[1].content[1]: the result of \"2\" has no use`},
		{"a result before its use", []mcp.SamplingMessage{user(result("1")), model(use("1")), user(result("1"))}, `messages[0].content[0]: the result of \"1\" has no use`},
		{"no role", []mcp.SamplingMessage{{Content: []mcp.Content{hi}}}, `messages[0]: the role is \"\": want user or assistant`},
		{"a role of other protocols", []mcp.SamplingMessage{user(hi), {Role: "system", Content: []mcp.Content{hi}}}, `messages[1]: the role is \"system\"`},
		{"no content", []mcp.SamplingMessage{user()}, `messages[0]: the message has no content`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer()
			server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
				_, err := server.Sample(ctx, "k", mcp.CreateMessageParams{MaxTokens: 1, Messages: c.messages, Meta: mcp.Meta{"a": 1}})
				return "sampled", err
			})
			answer := `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}`
			got, a := ask(t, s, "t", map[string]string{"k": answer})
			if c.want == "" {
				want(t, got, textResult("sampled"))
			} else if wantPart(t, got, c.want); len(a.rounds) > 0 {
				t.Error("was asked")
			}
		})
	}
}

// TestSampleContext: clients could not declare that they give context before 2025-11-25, and could
// be asked for it.
func TestSampleContext(t *testing.T) {
	for _, c := range []struct {
		revision mcp.Revision
		declared string
		asks     bool
	}{
		{mcp.Revision20241105, `{"sampling":{}}`, true}, {mcp.Revision20250618, `{"sampling":{}}`, true}, {mcp.Revision20250618, `{}`, false},
		{mcp.Revision20251125, `{"sampling":{}}`, false}, {mcp.LatestRevision, `{"sampling":{}}`, false},
		{mcp.Revision20251125, `{"sampling":{"context":{}}}`, true}, {mcp.LatestRevision, `{"sampling":{"context":{}}}`, true},
	} {
		s := newServer()
		server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
			p := sampling("?")
			p.IncludeContext = "thisServer"
			_, err := server.Sample(ctx, "k", p)
			return "", err
		})
		req := request(mcp.MethodCallTool, `{"name":"t"}`)
		req.Revision, req.ClientCapabilities = c.revision, json.RawMessage(c.declared)
		res, err := s.ServeMCP(t.Context(), req)
		if e := (*mcp.CapabilityError)(nil); (err == nil && res.Type == mcp.ResultInputRequired) != c.asks || !c.asks && !errors.As(err, &e) {
			t.Errorf("%s with %s: %+v, %v", c.revision, c.declared, res, err)
		}
	}
}
