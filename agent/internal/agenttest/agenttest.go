// Package agenttest has tests of an agent that the models of all providers must pass.
package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// shelfOfLong is a tool that returns much.
type shelfOfLong struct{}

func (shelfOfLong) List(context.Context) ([]mcp.Tool, error) {
	return []mcp.Tool{{Name: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`), Annotations: mcp.ReadOnly}}, nil
}

func (shelfOfLong) Changed() <-chan struct{} { return nil }

func (shelfOfLong) Call(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(use.Input) + strings.Repeat("much ", 500))}}, nil
}

// Compacted checks that servers accept a compacted conversation, with and without a summary.
// model returns a model with a window, and its server, which plays turns. tooLong is the
// server's refusal of a conversation that is too long.
func Compacted(t *testing.T, tooLong modelserver.Failure, model func(t *testing.T, window int, turns ...modelserver.Turn) (agent.Model, *modelserver.Server)) {
	const summary = "It was much."
	down := modelserver.Turn{Fail: &modelserver.Failure{Status: 500, Message: "down"}}
	long := modelserver.Turn{Fail: &tooLong}
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
		m, s := model(t, tt.window, append(turns, modelserver.Turn{Text: "Done."})...)
		times := 0
		for e, err := range agent.New(m, shelfOfLong{}, &agent.Options{TrustAnnotations: func(string) bool { return true }}).Run(t.Context(), mcp.Text("go")) {
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
