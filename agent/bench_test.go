package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// steps is the number of calls in a conversation, one a step.
const steps = 50

// instantModel is a model that replies without delay: with a call, and after all steps with a text.
type instantModel struct{ replies []agent.Message }

func newInstantModel() *instantModel {
	m := &instantModel{}
	for i := range steps {
		m.replies = append(m.replies, agent.Message{Content: []mcp.Content{
			mcp.Text("Let me see."), mcp.UseTool(fmt.Sprintf("call-%d", i), "echo", json.RawMessage(fmt.Sprintf(`{"text":"hello %d"}`, i))),
		}, Usage: &agent.Usage{Input: 1000 + 50*i, Output: 20}})
	}
	m.replies = append(m.replies, agent.Message{Content: []mcp.Content{mcp.Text("Done.")}, Usage: &agent.Usage{Input: 5000, Output: 5}})
	return m
}

func (m *instantModel) Window() int { return 100_000 }

func (m *instantModel) Reply(_ context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		reply := m.replies[len(c.Messages)/2]
		if yield(agent.Delta{Text: reply.Content[0].Text}, nil) {
			yield(agent.Delta{Message: &reply}, nil)
		}
	}
}

// loops returns a conversation of 50 calls, and the same calls made directly.
func loops(t testing.TB) (loop, direct func()) {
	s := server.New("bench", "1", nil)
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	}, server.ToolOptions{Annotations: mcp.ReadOnly})
	box, err := agent.Dial(t.Context(), s, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	m := newInstantModel()
	loop = func() {
		ended := false
		for e, err := range newTrustingAgent(m, box, &agent.Options{System: "Be brief.", Limits: agent.Limits{MaxSteps: steps + 1}}).Run(context.Background(), mcp.Text("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := e.(agent.Ended); ok {
				ended = e.Reason == agent.Answered && e.Steps == steps+1
			}
		}
		if !ended {
			t.Fatal("the conversation has ended otherwise")
		}
	}
	direct = func() {
		for _, reply := range m.replies[:steps] {
			res, err := box.Call(context.Background(), *reply.Content[1].ToolUse, func(mcp.ProgressParams) {})
			if err != nil || res.IsError {
				t.Fatal(res, err)
			}
		}
	}
	return loop, direct
}

// BenchmarkLoop measures a step of a conversation of 50 calls with an instant model and an
// instant tool, and the same call made directly.
func BenchmarkLoop(b *testing.B) {
	loop, direct := loops(b)
	for name, f := range map[string]func(){"loop": loop, "direct": direct} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
		})
	}
}
