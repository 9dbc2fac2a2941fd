package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A call of a client of 2025-11-25 that asks for a task has no effect if the client has no room for
// the task, also if many calls begin at the same time. A call that ends without a task gives its
// room back.
func TestTasksHaveRoomBeforeTheyBegin(t *testing.T) {
	t.Parallel()
	const most, all = 100, 150
	s := taskServer(t)
	var effects atomic.Int32
	server.Tool(s, "effect", "", func(ctx context.Context, _ nothing) (string, error) {
		effects.Add(1)
		<-ctx.Done()
		return "", ctx.Err()
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
	server.Tool(s, "strict", "", func(context.Context, struct{ Name string }) (string, error) { return "", nil },
		server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
	legacy := client.Wire{Revision: mcp.Revision20251125}
	g, _ := over(t, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: legacy}})
	c := dial(t, g, client.Options{Wire: legacy})
	for range all {
		if task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: "up__strict", Arguments: json.RawMessage(`{"Name":7}`)}); err == nil {
			t.Fatalf("a call with a wrong argument is a task: %+v", task)
		}
	}
	var made, refused atomic.Int32
	var calls sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range all {
		calls.Go(func() {
			task, _, err := c.StartTool(ctx, mcp.CallToolParams{Name: "up__effect"})
			if err == nil && task != nil {
				made.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	calls.Wait()
	polltest.Until(t, "the work of all tasks", func() bool { return effects.Load() >= most })
	if made.Load() != most || refused.Load() != all-most || effects.Load() != most {
		t.Errorf("%d tasks, %d refusals, %d effects, want %d, %d and %d", made.Load(), refused.Load(), effects.Load(), most, all-most, most)
	}
}

// A request that continues a call without declaring tasks gets no task, also if the first request
// of the call has declared them.
func TestContinuedCallWithoutTasksStaysCall(t *testing.T) {
	type named struct {
		Name string `json:"name"`
	}
	for _, declares := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := server.New("up", "1", &server.Options{Logger: quiet})
			defer s.Close()
			server.Tool(s, "ask", "", func(ctx context.Context, _ nothing) (string, error) {
				answer, err := server.Ask[named](ctx, "who", "Who are you?")
				if err != nil {
					return "", err
				}
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
				return "Hello, " + answer.Name, nil
			})
			h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}}})
			settle(t, h)
			g := gatewayOf(t, h, gateway.Options{TaskAfter: time.Second})
			req := request("ada", `{"name":"up__ask","arguments":{}}`)
			plain := req.ClientCapabilities
			req.ClientCapabilities = mcpwire.WithTasksCapability(plain)
			keys, state := asks(t, g, req)
			next := answered(req, state, keys...)
			if !declares {
				next.ClientCapabilities = plain
			}
			res, err := g.ServeMCP(t.Context(), next)
			if err != nil || (res.Type == mcpwire.ResultTask) != declares {
				t.Errorf("declared %v: %q %s %+v, %v", declares, res.Type, res.Raw, res.Value, err)
			}
		})
	}
}

// A task of the gateway's own fails with the error that the call would have been answered with: it
// names the capability that the client lacks.
func TestTaskNamesMissingCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New("up", "1", &server.Options{Logger: quiet})
		defer s.Close()
		server.Tool(s, "sample", "", func(ctx context.Context, _ nothing) (string, error) {
			time.Sleep(time.Minute)
			return "", &mcp.CapabilityError{Required: mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}}
		})
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: s})
		settle(t, h)
		g := gatewayOf(t, h, gateway.Options{TaskAfter: time.Second})
		task := startTask(t, dial(t, g, client.Options{}), "up__sample")
		time.Sleep(2 * time.Minute)
		e, ok := errors.AsType[*mcp.Error](stateOf(t, task).Err)
		if !ok || e.Code != mcp.CodeMissingCapability || string(e.Data) != `{"requiredCapabilities":{"sampling":{}}}` {
			t.Errorf("%+v", e)
		}
	})
}
