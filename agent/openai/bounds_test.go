package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// A conversation may bound its reply and say whether tools are to be called; what is to be known comes with the reply where nobody
// else takes it.
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
		if notices != 1 || !cut || m.Name() != "m" {
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

// The agent knows what to do about a conversation that is too long.
func TestContextLength(t *testing.T) {
	s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Fail: &modelserver.Failure{Status: 400, Code: "context_length_exceeded", Message: "too long"}}}}, modelserver.Chat)
	if _, err := ask(t.Context(), serve(t, s)); !errors.Is(err, agent.ErrContextLength) {
		t.Errorf("%v", err)
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
	long := modelserver.Turn{Fail: &modelserver.Failure{Status: 400, Code: "context_length_exceeded", Message: "too long"}}
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
		s := modelserver.New(t.Error, modelserver.Script{Turns: turns}, modelserver.Chat)
		a := agent.New(openai.New(serve(t, s)), shelfOfLong{}, agent.Options{Window: tt.window})
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
