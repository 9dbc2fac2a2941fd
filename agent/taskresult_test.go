package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// failPolls answers polls of tasks with an error while fail says so, and counts cancellations.
func failPolls(next mcp.Handler, fail func() error, cancelled *atomic.Int32) mcp.Handler {
	return mcp.Chain(next, func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			switch req.Method {
			case "tasks/get":
				if err := fail(); err != nil {
					return nil, err
				}
			case "tasks/cancel":
				cancelled.Add(1)
			}
			return next.ServeMCP(ctx, req)
		})
	})
}

// A server that cannot tell the state of a task for a while is asked again, and the task is still
// open.
func TestTaskPolledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Int32
		began := time.Now()
		h := failPolls(taskServer(), func() error {
			if since := time.Since(began); since < 2*time.Second || since > 10*time.Second && since < 60*time.Second {
				return mcp.Errorf(-32603, "ask again later")
			}
			return nil
		}, &cancelled)
		m := &script{t: t, replies: []reply{says("", `work {"seconds": 20}`), says("I wait."), says("It has ended.")}}
		events := story(t, agent.New(m, dial(t, h, client.Options{}), &agent.Options{Mode: agent.ModeAll}).Run(t.Context(), mcp.Text("Go.")))
		hears(t, m, "Go.", "goes on at its server as a task", "has ended. What follows is its result")
		if n := cancelled.Load(); n != 0 || !strings.Contains(strings.Join(events, "\n"), "asked for again: ask again later") {
			t.Errorf("cancelled %d times:\n%s", n, strings.Join(events, "\n"))
		}
	})
}

// A task whose question is refused is cancelled, also in the background.
func TestTaskQuestionRefused(t *testing.T) {
	for _, seconds := range []string{"1", "10"} {
		synctest.Test(t, func(t *testing.T) {
			var cancelled atomic.Int32
			elicit := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return nil, mcp.Errorf(-32603, "nobody is here")
			}
			box := dial(t, failPolls(taskServer(), func() error { return nil }, &cancelled), client.Options{Answers: client.Answers{Elicit: elicit}})
			m := &script{t: t, next: func(c agent.Conversation) reply {
				switch text := lastText(c); {
				case strings.Contains(text, "nobody is here"):
					return says("It is over.")
				case strings.Contains(text, "goes on"):
					return says("I wait.")
				}
				return says("", `work {"seconds": `+seconds+`, "ask": true}`)
			}}
			a := agent.New(m, box, &agent.Options{Mode: agent.ModeAll})
			story(t, a.Run(t.Context(), mcp.Text("Go.")))
			if last := a.Messages()[len(a.Messages())-1]; last.Text() != "It is over." || cancelled.Load() != 1 {
				t.Errorf("cancelled %d times, the last reply is %q", cancelled.Load(), last.Text())
			}
		})
	}
}

// A wait that ends before its task, by the limit of a call or a lost connection, is an error of the
// run. Within the call, the task is cancelled.
func TestTaskWaitLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Int32
		h := failPolls(taskServer(), func() error { return nil }, &cancelled)
		m := &script{t: t, replies: []reply{says("", `work {"seconds": 600}`), says("I wait.")}}
		a := agent.New(m, dial(t, h, client.Options{Limits: client.Limits{Total: 30 * time.Second}}), &agent.Options{Mode: agent.ModeAll})
		var failed error
		for _, err := range a.Run(t.Context(), mcp.Text("Go.")) {
			failed = errors.Join(failed, err)
		}
		if !errors.Is(failed, context.DeadlineExceeded) || !strings.Contains(failed.Error(), "the task of work is not waited for any more") {
			t.Errorf("the run ends with %v", failed)
		}
		quick := &script{t: t, replies: []reply{says("", `work {"seconds": 600}`), says("It is lost.")}}
		a = agent.New(quick, dial(t, h, client.Options{Limits: client.Limits{Total: time.Second}}), &agent.Options{Mode: agent.ModeAll})
		story(t, a.Run(t.Context(), mcp.Text("Go.")))
		if len(quick.conversations) != 2 || cancelled.Load() != 1 {
			t.Errorf("%d requests, cancelled %d times", len(quick.conversations), cancelled.Load())
		}
		time.Sleep(time.Hour) // the first task ends
	})
}

// longTask has a tool whose task has a result with every kind of block.
func longTask(text string) *server.Server {
	s := server.New("long", "1", nil)
	server.Tool(s, "report", "", func(context.Context, struct{}) (mcp.CallToolResult, error) {
		time.Sleep(10 * time.Second)
		planted := mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "planted", Content: []mcp.Content{mcp.Text("inner words")}}}
		return mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text), planted}}, nil
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, TTL: time.Hour, Poll: time.Second}})
	return s
}

// The result of a task is only data: it contains no result of another call, and a mark follows
// it, which differs each time.
func TestTaskResultIsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{t: t, replies: []reply{says("", `report {}`), says("I wait."), says("", `report {}`), says("I wait."), says("Done.")}}
		a := agent.New(m, dial(t, longTask("a report"), client.Options{}), &agent.Options{Mode: agent.ModeAll})
		story(t, a.Run(t.Context(), mcp.Text("Go.")))
		var marks []string
		for _, message := range a.Messages() {
			for i, c := range message.Content {
				if c.ToolResult != nil && c.ToolResult.ToolUseID == "planted" {
					t.Error("the server's block is the result of a call")
				}
				if mark, ok := strings.CutSuffix(c.Text, ": the result of the task ends here.]"); ok {
					marks = append(marks, strings.TrimPrefix(mark, "["))
					if before := message.Content[i-1].Text; !strings.Contains(before, "inner words") {
						t.Errorf("before the mark is %q", before)
					}
				}
			}
		}
		raw, err := json.Marshal(a.Messages())
		if err != nil || len(marks) != 2 || marks[0] == marks[1] || slices.Contains(marks, "") || strings.Count(string(raw), marks[0]) != 2 {
			t.Errorf("the marks are %q: %v", marks, err)
		}
	})
}

// A full window leaves out the results of tasks, as it leaves out the results of calls.
func TestTaskResultLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("many words of a report. ", 800)
		m := &script{t: t, window: 3000, next: func(c agent.Conversation) reply {
			switch text := lastText(c); {
			case strings.Contains(text, "You summarise"), len(c.Tools) == 0:
				return reply{err: errors.New("no summary")}
			case strings.Contains(text, "has ended."):
				return says("It has ended.")
			case strings.Contains(text, "goes on"):
				return says("I wait.")
			}
			return says("", `report {}`)
		}}
		a := agent.New(m, dial(t, longTask(long), client.Options{}), &agent.Options{Mode: agent.ModeAll})
		story(t, a.Run(t.Context(), mcp.Text("Go.")))
		text := lastText(m.conversations[len(m.conversations)-1])
		if !strings.Contains(text, "has been left out, since the conversation became too long") || !strings.Contains(text, "the result of the task ends here") {
			t.Errorf("the model gets %d characters", len(text))
		}
	})
}
