package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// erasOfTasks are the revisions of upstreams with tasks.
var erasOfTasks = []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125}

func overEra(t *testing.T, s *server.Server, upstream mcp.Revision) (g mcp.Handler) {
	gw, _ := over(t, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: upstream}}})
	return gw
}

// answerAda answers each question with a name, and keeps the messages.
func answerAda(asked chan<- string) client.Answers {
	return client.Answers{Elicit: func(_ context.Context, p *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- p.Message
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"Name":"Ada"}`)}, nil
	}}
}

// A client of any revision calls a tool that needs a task, at an upstream of any revision that has
// tasks, and answers its question. Clients without tasks get the result as usual.
func TestTaskCallsOfAllEras(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		g := overEra(t, taskServer(t), upstream)
		for _, revision := range mcp.Revisions() {
			if revision < mcp.Revision20250618 {
				continue // without elicitation
			}
			t.Run(fmt.Sprintf("%s of %s", revision, upstream), func(t *testing.T) {
				asked := make(chan string, 10)
				for _, handled := range []bool{true, false} {
					o := client.Options{Wire: client.Wire{Revision: revision}, Answers: answerAda(asked)}
					if !handled { // the program handles tasks itself, so that the client neither declares nor takes them
						o.Extensions = []mcp.Extension{{ID: "com.example/tasks", ResultTypes: []mcp.ResultType{mcpwire.ResultTask}}}
					}
					c := dial(t, g, o)
					got, err := client.Call[string](t.Context(), c, "up__ask", nil)
					if err != nil || got != "Hello, Ada" || len(asked) != 1 {
						t.Fatalf("tasks %v: %q, %v, asked %d times", handled, got, err, len(asked))
					}
					if q := <-asked; !strings.Contains(q, "Who are you?") || strings.Count(q, "The server up asks") != 1 {
						t.Errorf("asked %q", q)
					}
				}
			})
		}
	}
}

// A handle of a task works between all eras that have tasks: state, answers, result and
// cancellation.
func TestTaskHandlesOfAllEras(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		for _, revision := range erasOfTasks {
			t.Run(fmt.Sprintf("%s of %s", revision, upstream), func(t *testing.T) {
				t.Parallel()
				stopped := make(chan struct{})
				s := taskServer(t)
				server.Tool(s, "stops", "", func(ctx context.Context, _ struct{}) (string, error) {
					server.Progress(ctx, 1, 2, "half")
					<-ctx.Done()
					close(stopped)
					return "", ctx.Err()
				}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
				server.Tool(s, "fails", "", func(context.Context, struct{}) (string, error) { return "", errors.New("out of paper") },
					server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
				asked := make(chan string, 10)
				c := dial(t, overEra(t, s, upstream), client.Options{Wire: client.Wire{Revision: revision}, Answers: answerAda(asked)})
				task := startTask(t, c, "up__ask")
				polltest.Until(t, "a question", func() bool { return stateOf(t, task).Status == "input_required" })
				if res, err := task.Wait(t.Context()); err != nil || res.Content[0].Text != "Hello, Ada" || len(asked) != 1 {
					t.Errorf("%+v, %v, asked %d times", res, err, len(asked))
				}
				if s := stateOf(t, task); s.Status != "completed" || s.Result.Content[0].Text != "Hello, Ada" {
					t.Errorf("%+v", s)
				}
				task = startTask(t, c, "up__fails")
				if res, err := task.Wait(t.Context()); err != nil || !res.IsError || res.Content[0].Text != "out of paper" {
					t.Errorf("%+v, %v", res, err)
				}
				task = startTask(t, c, "up__stops")
				polltest.Until(t, "a message", func() bool { return stateOf(t, task).Message == "half" })
				if err := task.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
				select {
				case <-stopped:
				case <-time.After(time.Minute):
					t.Error("the handler of the upstream goes on")
				}
				if _, err := task.Wait(t.Context()); !errors.Is(err, client.ErrTaskCancelled) {
					t.Error(err)
				}
			})
		}
	}
}

func stateOf(t *testing.T, task *client.Task) *client.TaskState {
	t.Helper()
	state, err := task.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// A client that waits for a task without knowing tasks hears of its progress, and ends the task
// when it gives up.
func TestWaitForTaskOfUpstream(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		t.Run(string(upstream), func(t *testing.T) {
			t.Parallel()
			s := taskServer(t)
			stopped := make(chan struct{})
			server.Tool(s, "stops", "", func(ctx context.Context, _ struct{}) (string, error) {
				server.Progress(ctx, 1, 2, "half")
				<-ctx.Done()
				close(stopped)
				return "", ctx.Err()
			}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
			c := dial(t, overEra(t, s, upstream), client.Options{Wire: client.Wire{Revision: mcp.Revision20250618}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := client.Call[string](ctx, c, "up__stops", nil, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
				if p.Message == "half" {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			select {
			case <-stopped:
			case <-time.After(time.Minute):
				t.Error("the handler of the upstream goes on")
			}
		})
	}
}

// Each era's form of tasks stays in its era: tools have the member execution for clients of
// 2025-11-25 only, and calls reach upstreams with the sign of their own era.
func TestErasOfTasksStayApart(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		g := overEra(t, taskServer(t), upstream)
		for _, revision := range mcp.Revisions() {
			res, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Revision: revision, Params: json.RawMessage("{}")})
			if err != nil {
				t.Fatal(err)
			}
			if has := strings.Contains(string(res.Raw), `"execution":{"taskSupport":"optional"}`); has != (revision == mcp.Revision20251125) {
				t.Errorf("%s of %s: %s", revision, upstream, res.Raw)
			}
			if strings.Contains(string(res.Raw), "required\":true") || strings.Count(string(res.Raw), "execution") > 3 {
				t.Errorf("%s of %s: %s", revision, upstream, res.Raw)
			}
		}
		c := dial(t, g, client.Options{})
		got, err := client.Call[string](t.Context(), c, "up__declared", nil)
		if err != nil || strings.Contains(got, "tasks") != true {
			t.Errorf("%s: %s, %v", upstream, got, err)
		}
	}
}
