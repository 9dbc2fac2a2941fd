package gateway_test

import (
	"context"
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

// A subscription follows a task of the gateway's own: its message, its question and its end.
func TestHostedTasksAreFollowed(t *testing.T) {
	t.Parallel()
	g := promoting(t, mcp.LatestRevision, 20*time.Millisecond)
	c := dial(t, g, client.Options{Answers: answerAda(make(chan string, 10))})
	task := startTask(t, c, "up__ask")
	states := followTasks(t, g, task.ID())
	awaitState(t, states, "working half")
	if _, err := client.Call[string](t.Context(), c, "up__release", nil); err != nil {
		t.Fatal(err)
	}
	awaitState(t, states, "input_required")
	if _, err := task.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitState(t, states, "completed")
}

// A client of 2025-11-25 hears of the end of each task of the gateway's own, also after many: a
// session watches only a limited number of tasks that have not ended.
func TestWatchesOfHostedTasksEnd(t *testing.T) {
	t.Parallel()
	const many = 300 // more than a session watches at a time
	s := taskServer(t)
	server.Tool(s, "quick", "", func(context.Context, nothing) (string, error) { return "done", nil },
		server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
	g, _ := over(t, hub.Definition{Name: "up", Target: s})
	ended := make(chan string, 2*many)
	c := dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}, OnNotification: func(n mcp.Notification) {
		if n.Method == mcpwire.NotificationTaskStatus && strings.Contains(string(n.Params), `"completed"`) {
			ended <- string(n.Params)
		}
	}})
	for range many {
		task := startTask(t, c, "up__quick")
		for limit := time.After(time.Minute); ; {
			select {
			case n := <-ended:
				if strings.Contains(n, task.ID()) {
					break
				}
				continue
			case <-limit:
				t.Fatal("the client has not heard of the end of a task")
			}
			break
		}
	}
}

// The tasks of one principal that run are bounded. A call above the bound stays a call, and another
// principal has room.
func TestRunningHostedTasksAreBounded(t *testing.T) {
	t.Parallel()
	const most = 100
	g := promoting(t, mcp.LatestRevision, time.Millisecond)
	call := func(ctx context.Context, principal string) *mcp.Result {
		res, _ := g.ServeMCP(ctx, taskRequest(principal, mcp.MethodCallTool, `{"name":"up__hang","arguments":{}}`))
		return res
	}
	last := ""
	for i := range most {
		res := call(t.Context(), "ada")
		if res == nil || res.Type != mcpwire.ResultTask {
			t.Fatalf("call %d: %+v", i, res)
		}
		last = string(res.Raw)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if res := call(ctx, "ada"); res != nil {
		t.Errorf("one task too many: %+v", res)
	}
	if res := call(t.Context(), "bob"); res == nil || res.Type != mcpwire.ResultTask {
		t.Errorf("another principal: %+v", res)
	}
	_, id, _ := strings.Cut(last, `"taskId":"`)
	id, _, _ = strings.Cut(id, `"`)
	if _, err := g.ServeMCP(t.Context(), taskRequest("ada", mcpwire.MethodCancelTask, `{"taskId":"`+id+`"}`)); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "room for a task", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res := call(ctx, "ada")
		return res != nil && res.Type == mcpwire.ResultTask
	})
}
