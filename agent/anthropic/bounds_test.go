package anthropic_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/agent/internal/agenttest"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// A conversation may limit its reply and choose whether tools are called. Without Warn, the
// messages for the user come as notices.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		own, thinking, limit, want int
		choice, sent               string
	}{
		{0, 0, 0, 16_000, "", ""}, {0, 0, 7, 7, "auto", ""}, {5, 0, 7, 5, "required", "any"}, {0, 0, 9, 9, "none", "none"}, {0, 2000, 9, 2009, "required", ""},
	} {
		server, o := serve(t, modelserver.Turn{Text: "Hello."})
		o.MaxTokens, o.Thinking = tt.own, tt.thinking
		c := hello()
		c.MaxTokens, c.ToolChoice = tt.limit, tt.choice
		c.Tools = []mcp.Tool{{Name: "a", InputSchema: json.RawMessage(`{"type":"object"}`)}, {Name: "a", InputSchema: json.RawMessage(`{"type":"object"}`)}}
		m, notices := anthropic.New(o), 0
		for delta, err := range m.Reply(t.Context(), c) {
			if err != nil {
				t.Fatal(err)
			}
			if delta.Notice != "" {
				notices++
			}
		}
		if notices != 1 || m.(interface{ Name() string }).Name() != "claude-test" {
			t.Errorf("%d notices", notices)
		}
		sent := struct {
			MaxTokens  int                   `json:"max_tokens"`
			ToolChoice struct{ Type string } `json:"tool_choice"`
		}{}
		if err := json.Unmarshal(server.Requests()[0].Body, &sent); err != nil {
			t.Fatal(err)
		}
		if sent.MaxTokens != tt.want || sent.ToolChoice.Type != tt.sent {
			t.Errorf("sent %+v, want %+v", sent, tt)
		}
	}
}

// A conversation that is too long gives the error that the agent handles.
func TestKnownErrors(t *testing.T) {
	_, o := serve(t, modelserver.Turn{Stop: "model_context_window_exceeded"},
		modelserver.Turn{Fail: &modelserver.Failure{Status: 400, Message: "prompt is too long: 3 tokens > 2 maximum"}})
	m := anthropic.New(o)
	for _, want := range []error{agent.ErrContextLength, agent.ErrContextLength} {
		if err := failure(m); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestCompacted(t *testing.T) {
	tooLong := modelserver.Failure{Status: 400, Message: "prompt is too long: 3 tokens > 2 maximum"}
	agenttest.Compacted(t, tooLong, func(t *testing.T, window int, turns ...modelserver.Turn) (agent.Model, *modelserver.Server) {
		s, o := serve(t, turns...)
		o.Window = cmp.Or(window, -1)
		return anthropic.New(o), s
	})
}

func TestResources(t *testing.T) {
	agenttest.Resources(t, func(t *testing.T, turns ...modelserver.Turn) (agent.Model, *modelserver.Server) {
		s, o := serve(t, turns...)
		return anthropic.New(o), s
	})
}
