package agent_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// answers is a model that gives the same reply each time, or fails.
type answers struct{ err error }

func (m answers) Reply(context.Context, agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		yield(agent.Delta{Message: &agent.Message{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("yes")}}}, m.err)
	}
}

func (answers) Window() int { return 0 }

func TestState(t *testing.T) {
	for want, m := range map[agent.State]answers{agent.Finished: {}, agent.Failed: {errors.New("no")}} {
		a := agent.New(m, nil, nil)
		if got := a.State(); got != agent.Idle {
			t.Errorf("a new agent is %s", got)
		}
		for e := range a.Run(t.Context(), mcp.Text("?")) {
			if changed, ok := e.(agent.StateChanged); ok && a.State() != changed.State {
				t.Errorf("it is %s where it is said to be %s", a.State(), changed.State)
			}
		}
		if got := a.State(); got != want {
			t.Errorf("it is %s, not %s", got, want)
		}
	}
	left := agent.New(answers{}, nil, nil)
	for range left.Run(t.Context(), mcp.Text("?")) {
		break
	}
	if got := left.State(); got != agent.Failed {
		t.Errorf("an agent whose run was left is %s", got)
	}
}
