package openai_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/internal/agenttest"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// A conversation may limit its reply and choose whether tools are called. Without Warn, the
// messages for the user come as notices.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		own, limit, want int
		choice, sent     string
	}{
		{0, 0, 0, "", ""}, {0, 7, 7, "auto", ""}, {5, 7, 5, "required", "required"}, {9, 7, 7, "none", "none"}, {9, 0, 9, "", ""},
	} {
		s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "hi", Stop: "length"}}}, modelserver.Chat)
		o := serve(t, s)
		o.MaxTokens = tt.own
		m := openai.New(o)
		c := agent.Conversation{MaxTokens: tt.limit, ToolChoice: tt.choice, Tools: []mcp.Tool{{Name: "a"}, {Name: "a"}},
			Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}}
		notices, cut := 0, false
		for delta, err := range m.Reply(t.Context(), c) {
			if err != nil {
				t.Fatal(err)
			}
			if delta.Notice != "" {
				notices++
			}
			cut = cut || delta.Message != nil && delta.Message.Cut
		}
		if notices != 1 || !cut || m.(interface{ Name() string }).Name() != "m" {
			t.Errorf("%d notices, cut %v", notices, cut)
		}
		var sent struct {
			MaxTokens  int `json:"max_tokens"`
			ToolChoice any `json:"tool_choice"`
		}
		if err := json.Unmarshal(s.Requests()[0].Body, &sent); err != nil {
			t.Fatal(err)
		}
		if choice, _ := sent.ToolChoice.(string); sent.MaxTokens != tt.want || choice != tt.sent {
			t.Errorf("sent %+v, want %+v", sent, tt)
		}
	}
}

// A conversation that is too long gives the error that the agent handles.
func TestContextLength(t *testing.T) {
	s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Fail: &modelserver.Failure{Status: 400, Code: "context_length_exceeded", Message: "too long"}}}}, modelserver.Chat)
	if _, err := ask(t.Context(), serve(t, s)); !errors.Is(err, agent.ErrContextLength) {
		t.Errorf("%v", err)
	}
}

func TestCompacted(t *testing.T) {
	tooLong := modelserver.Failure{Status: 400, Code: "context_length_exceeded", Message: "too long"}
	agenttest.Compacted(t, tooLong, func(t *testing.T, window int, turns ...modelserver.Turn) (agent.Model, *modelserver.Server) {
		s := modelserver.New(t.Error, modelserver.Script{Turns: turns}, modelserver.Chat)
		o := serve(t, s)
		o.Window = window
		return openai.New(o), s
	})
}

func TestResources(t *testing.T) {
	agenttest.Resources(t, func(t *testing.T, turns ...modelserver.Turn) (agent.Model, *modelserver.Server) {
		s := modelserver.New(t.Error, modelserver.Script{Turns: turns}, modelserver.Chat)
		return openai.New(serve(t, s)), s
	})
}
