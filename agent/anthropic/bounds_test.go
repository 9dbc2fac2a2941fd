package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// A conversation may bound its reply and say whether tools are to be called; what is to be known comes with the reply where nobody
// else takes it.
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
		if notices != 1 || m.Name() != "claude-test" {
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

// The agent knows what to do about these.
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

// shelfOfLong is a tool that returns much.
type shelfOfLong struct{}

func (shelfOfLong) List(context.Context) ([]mcp.Tool, error) {
	return []mcp.Tool{{Name: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`), Annotations: mcp.ReadOnly}}, nil
}

func (shelfOfLong) Changed() <-chan struct{} { return nil }

func (shelfOfLong) Call(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(use.Input) + strings.Repeat("much ", 500))}}, nil
}

// A conversation that has been compacted, by a summary or without one, is one that servers take.
func TestCompacted(t *testing.T) {
	const summary = "It was much."
	down := modelserver.Turn{Fail: &modelserver.Failure{Status: 500, Message: "down"}}
	long := modelserver.Turn{Fail: &modelserver.Failure{Status: 400, Message: "prompt is too long: 3 tokens > 2 maximum"}}
	for _, tt := range []struct {
		window int
		then   []modelserver.Turn // behind four calls
		want   string
	}{
		{3000, []modelserver.Turn{{Text: summary}}, summary},
		{3000, []modelserver.Turn{down}, ""},
		{0, []modelserver.Turn{long, {Text: summary}}, summary},
		{0, []modelserver.Turn{long, down}, ""},
	} {
		var turns []modelserver.Turn
		for i := range 5 {
			if i == 4 {
				turns = append(turns, tt.then...)
			}
			turns = append(turns, modelserver.Turn{Text: fmt.Sprint("Step ", i), Calls: []modelserver.Call{{Name: "read", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}}})
		}
		turns = append(turns, modelserver.Turn{Text: "Done."})
		s, o := serve(t, turns...)
		o.Window = -1
		a := agent.New(anthropic.New(o), shelfOfLong{}, agent.Options{Window: tt.window})
		times := 0
		for e, err := range a.Run(t.Context(), mcp.Text("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := e.(agent.Compacted); ok {
				if times++; c.Summary != tt.want || c.After >= c.Before {
					t.Errorf("%+v, want %q", c, tt.want)
				}
			}
		}
		if times != 1 || s.Left() != 0 {
			t.Errorf("compacted %d times, %d turns are left", times, s.Left())
		}
	}
}
