package interop

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// tasksServer has the tools of node/tasks-server.mjs.
func tasksServer(t *testing.T, opts *server.Options) *server.Server {
	s := server.New("tasks", "1", opts)
	t.Cleanup(func() { s.Close() })
	must := server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 50 * time.Millisecond}}
	server.Tool(s, "slow", "", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 2, "half")
		time.Sleep(300 * time.Millisecond)
		return "slow is done", nil
	}, must)
	server.Tool(s, "fails", "", func(context.Context, struct{}) (string, error) { return "", errors.New("out of paper") }, must)
	server.Tool(s, "asks", "", func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := server.Ask[struct{ Name string }](ctx, "who", "Who are you?")
		return "Hello, " + answer.Name, err
	}, must)
	server.Tool(s, "hangs", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, must)
	server.Tool(s, "plain", "", func(context.Context, struct{}) (string, error) { return "plain", nil })
	return s
}

func serveHTTP(t *testing.T, h mcp.Handler) (url string) {
	listening := httptest.NewServer(streamable.Handler(h, nil))
	t.Cleanup(listening.Close)
	return listening.URL
}

// The TypeScript SDK v1 uses the experimental tasks of a dowel server.
func TestTasksClientOfDowel(t *testing.T) {
	t.Parallel()
	runClient(t, "node", scriptPath(t, "tasks-client.mjs"), serveHTTP(t, tasksServer(t, nil)))
}

// The TypeScript SDK v1 uses tasks of upstreams of both eras through the gateway.
func TestTasksClientOfGateway(t *testing.T) {
	t.Parallel()
	for name, revision := range map[string]mcp.Revision{"modern": mcp.LatestRevision, "legacy": mcp.Revision20251125} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hub.New(nil)
			t.Cleanup(func() { h.Close() })
			up := hub.Definition{Name: "up", Target: tasksServer(t, nil), Options: client.Options{Wire: client.Wire{Revision: revision}}}
			h.Apply([]hub.Definition{up}, "the test begins")
			g := gateway.New(h, nil)
			t.Cleanup(func() { g.Close() })
			runClient(t, "node", scriptPath(t, "tasks-client.mjs"), serveHTTP(t, g), "up__")
		})
	}
}

// dowel's client uses the experimental tasks of a server on the TypeScript SDK v1.
func TestDowelClientOfTasks(t *testing.T) {
	t.Parallel()
	asked := 0
	answers := client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"Name":"Ada"}`)}, nil
	}}
	c, err := client.Dial(t.Context(), stdio.Command{Path: "node", Args: []string{scriptPath(t, "tasks-server.mjs")}}, &client.Options{Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for tool, want := range map[string]string{"slow": "slow is done", "may": "may is done", "asks": "Hello, Ada", "plain": "plain"} {
		if got, err := client.Call[string](t.Context(), c, tool, nil); err != nil || got != want {
			t.Errorf("%s: %q, %v", tool, got, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "fails"}); err != nil || !res.IsError || res.Content[0].Text != "out of paper" {
		t.Errorf("fails: %+v, %v", res, err)
	}
	task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: "may"})
	if err != nil || task == nil {
		t.Fatalf("%v, %v", task, err)
	}
	if res, err := task.Wait(t.Context()); err != nil || res.Content[0].Text != "may is done" {
		t.Errorf("%+v, %v", res, err)
	}
	task, _, err = c.StartTool(t.Context(), mcp.CallToolParams{Name: "hangs"})
	if err != nil || task == nil {
		t.Fatalf("%v, %v", task, err)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := task.Wait(t.Context()); !errors.Is(err, client.ErrTaskCancelled) {
		t.Error(err)
	}
}
