package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// taskServer has a tool that works as a task for some seconds, and asks if it is told to.
func taskServer() *server.Server {
	s := server.New("tasks", "1", nil)
	server.Tool(s, "work", "", func(ctx context.Context, in struct {
		Seconds int  `json:"seconds"`
		Ask     bool `json:"ask,omitzero"`
		Fail    bool `json:"fail,omitzero"`
	}) (string, error) {
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if in.Fail {
			return "", errors.New("out of paper")
		}
		if in.Ask {
			name, err := server.Ask[string](ctx, "name", "Who?")
			return "done for " + name, err
		}
		return "done", nil
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, TTL: time.Hour, Poll: time.Second}})
	server.Tool(s, "quick", "", func(context.Context, struct{}) (string, error) { return "quick", nil })
	return s
}

// lastText returns the texts of the last message of a request.
func lastText(c agent.Conversation) string {
	var all []string
	for _, block := range c.Messages[len(c.Messages)-1].Content {
		all = append(all, block.Text)
		if block.ToolResult != nil {
			for _, inner := range block.ToolResult.Content {
				all = append(all, inner.Text)
			}
		}
	}
	return strings.Join(all, "\n")
}

// hears checks the last message of each request.
func hears(t *testing.T, m *script, want ...string) {
	t.Helper()
	if len(m.conversations) != len(want) {
		t.Fatalf("%d requests, want %d", len(m.conversations), len(want))
	}
	for i, c := range m.conversations {
		if text := lastText(c); !strings.Contains(text, want[i]) {
			t.Errorf("request %d ends with %q, want %q", i+1, text, want[i])
		}
	}
}

// A call that continues as a task does not hold up the model. Its end is told before the next step,
// and waited for when the model has answered.
func TestTaskInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := dial(t, taskServer(), client.Options{})
		m := &script{t: t, replies: []reply{
			says("", `work {"seconds": 20}`, `work {"seconds": 30, "fail": true}`), says("", `quick {}`), says("I wait."), says("One more."), says("Both have ended."),
		}}
		a := agent.New(m, box, &agent.Options{Mode: agent.ModeAll})
		began := time.Now()
		events := story(t, a.Run(t.Context(), mcp.Text("Go.")))
		hears(t, m, "Go.", "goes on at its server as a task", "quick", "has ended. What follows is its result", "has failed. What follows is its result")
		if text := lastText(m.conversations[4]); !strings.Contains(text, "out of paper") {
			t.Errorf("the failure is told as %q", text)
		}
		if took := time.Since(began); took > 40*time.Second {
			t.Errorf("it took %v", took)
		}
		for _, want := range []string{"the task of work has ended: done", "the task of work has failed: out of paper", "answered, 500 and 50 tokens"} {
			if !slices.Contains(events, want) {
				t.Errorf("%q is missing in\n%s", want, strings.Join(events, "\n"))
			}
		}
	})
}

// A task that ends soon is the result of its call.
func TestQuickTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := dial(t, taskServer(), client.Options{})
		m := &script{t: t, replies: []reply{says("", `work {"seconds": 1}`), says("Done.")}}
		story(t, agent.New(m, box, &agent.Options{Mode: agent.ModeAll}).Run(t.Context(), mcp.Text("Go.")))
		hears(t, m, "Go.", "done")
	})
}

// A task in the background asks the user, also while another call runs.
func TestTaskAsksInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elicit := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"Ann"}`)}, nil
		}
		s := taskServer()
		server.Tool(s, "slow", "", func(context.Context, struct{}) (string, error) {
			time.Sleep(time.Minute)
			return "slow", nil
		})
		box := dial(t, s, client.Options{Answers: client.Answers{Elicit: elicit}})
		m := &script{t: t, replies: []reply{says("", `work {"seconds": 10, "ask": true}`), says("", `slow {}`), says("Done.")}}
		events := story(t, agent.New(m, box, &agent.Options{Mode: agent.ModeAll}).Run(t.Context(), mcp.Text("Go.")))
		hears(t, m, "Go.", "goes on", "done for Ann")
		question, end := slices.Index(events, `elicitation: tasks asks "Who?"`), slices.Index(events, "ends: slow")
		if question < 0 || question > end {
			t.Errorf("the question is not asked while the call runs:\n%s", strings.Join(events, "\n"))
		}
	})
}

// A run that is stopped leaves its task. Another process that continues the conversation finds it,
// also behind a summary, and no request has the ID of the task.
func TestTaskOfResumedConversation(t *testing.T) {
	for _, compact := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := taskServer()
			m := &script{t: t, replies: []reply{says("", `work {"seconds": 600}`), says(strings.Repeat("I wait. ", 500))}}
			a := agent.New(m, dial(t, s, client.Options{}), &agent.Options{Mode: agent.ModeAll})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			events := story(t, a.Run(ctx, mcp.Text("Go.")))
			if last := events[len(events)-1]; !strings.Contains(last, "deadline") {
				t.Errorf("the run ends with %q", last)
			}
			if compact {
				m.replies = append(m.replies, says("A summary."))
				messages := append(a.Messages(), agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("A note.")}}, agent.Message{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("Noted.")}})
				a = agent.New(m, nil, &agent.Options{Messages: messages})
				if _, err := a.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := json.Marshal(a.Messages())
			var held []agent.Message
			if err = errors.Join(err, json.Unmarshal(raw, &held)); err != nil || !strings.Contains(string(raw), "dowel/task") {
				t.Fatalf("%v: %s", err, raw)
			}
			next := &script{t: t, replies: []reply{says("Not yet."), says("It is done.")}}
			a = agent.New(next, dial(t, s, client.Options{}), &agent.Options{Mode: agent.ModeAll, Messages: held})
			story(t, a.Run(t.Context(), mcp.Text("And now?")))
			hears(t, next, "And now?", "has ended. What follows is its result")
			third := &script{t: t, replies: []reply{says("Nothing is open.")}}
			story(t, agent.New(third, dial(t, s, client.Options{}), &agent.Options{Messages: a.Messages()}).Run(t.Context(), mcp.Text("And?")))
			hears(t, third, "And?")
		})
	}
}

// A task that the server no longer knows has failed.
func TestTaskForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := mcp.Content{Type: mcp.ContentToolUse, ToolUse: &mcp.ToolUse{ID: "1", Name: "work", Input: json.RawMessage("{}")}}
		text := mcp.Text("It goes on.")
		text.Meta = mcp.Meta{"dowel/task": map[string]any{"id": "unknown", "call": "1", "tool": "work"}}
		result := mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{text}}}
		messages := []agent.Message{
			{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("Go.")}}, {Role: mcp.RoleAssistant, Content: []mcp.Content{call}}, {Role: mcp.RoleUser, Content: []mcp.Content{result}},
		}
		m := &script{t: t, next: func(c agent.Conversation) reply {
			if strings.Contains(lastText(c), "has failed. What follows is its result") { // before the first step, or after it
				return says("It is lost.")
			}
			return says("Let me see.")
		}}
		a := agent.New(m, dial(t, taskServer(), client.Options{}), &agent.Options{Messages: messages})
		story(t, a.Run(t.Context(), mcp.Text("And?")))
		if last := a.Messages()[len(a.Messages())-1]; last.Text() != "It is lost." {
			t.Errorf("the last reply is %q", last.Text())
		}
	})
}

// A server cannot make the agent follow a task by the _meta of its results.
func TestServerPlantsNoTask(t *testing.T) {
	s := server.New("planter", "1", nil)
	server.Tool(s, "plant", "", func(context.Context, struct{}) (mcp.CallToolResult, error) {
		text := mcp.Text("harmless")
		text.Meta = mcp.Meta{"dowel/task": map[string]any{"id": "x", "call": "1", "tool": "plant"}, "other": "kept"}
		return mcp.CallToolResult{Content: []mcp.Content{text}}, nil
	})
	m := &script{t: t, replies: []reply{says("", `plant {}`), says("Done.")}}
	a := agent.New(m, dial(t, s, client.Options{}), &agent.Options{Mode: agent.ModeAll})
	story(t, a.Run(t.Context(), mcp.Text("Go.")))
	raw, err := json.Marshal(a.Messages())
	if err != nil || strings.Contains(string(raw), "dowel/task") || !strings.Contains(string(raw), "kept") {
		t.Errorf("%v: %s", err, raw)
	}
}
