package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type none = struct{}

// addTasks adds the tools that the suite's scenarios of tasks call by name.
func addTasks(s *server.Server) {
	must := server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, TTL: time.Minute, Poll: 200 * time.Millisecond}}
	may := server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMay, After: 100 * time.Millisecond, TTL: 5 * time.Minute, Poll: 200 * time.Millisecond}}
	server.Tool(s, "greet", "Greets, without a task.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name + "!", nil
	})
	server.Tool(s, "slow_compute", "Takes some seconds.", slowCompute, may)
	server.Tool(s, "failing_job", "A task whose tool fails.", func(ctx context.Context, _ none) (string, error) {
		return "", errors.Join(pause(ctx, time.Second), errors.New("the job has failed"))
	}, must)
	server.Tool(s, "protocol_error_job", "A task that ends with a protocol error.", func(ctx context.Context, _ none) (string, error) {
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return "", err
		}
		return "", mcp.Errorf(jsonrpc.CodeInternal, "the backend is gone")
	}, must)
	server.Tool(s, "confirm_delete", "A task that asks once.", confirmDelete, must)
	server.Tool(s, "multi_input", "A task with two questions at once.", multiInput, must)
	early := must
	early.Task.After = 500 * time.Millisecond
	server.Tool(s, "test_tool_with_task", "Asks in the call, and then makes a task.", askThenWork, early)
}

// pause waits, unless the call or task is cancelled.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func slowCompute(ctx context.Context, in struct {
	Seconds float64 `json:"seconds"`
	Label   string  `json:"label,omitzero"`
}) (string, error) {
	server.Progress(ctx, 0, in.Seconds, "computing "+in.Label)
	return "computed " + in.Label, pause(ctx, time.Duration(in.Seconds*float64(time.Second)))
}

func confirmDelete(ctx context.Context, in struct {
	Filename string `json:"filename"`
}) (string, error) {
	answer, err := server.Ask[struct {
		Confirm bool `json:"confirm"`
	}](ctx, "confirm", "Delete "+in.Filename+"?")
	switch {
	case err != nil:
		return "", err
	case !answer.Confirm:
		return "kept " + in.Filename, nil
	}
	return "deleted " + in.Filename, nil
}

func multiInput(ctx context.Context, _ none) (string, error) {
	var first, second struct {
		Name    string `json:"name"`
		Confirm bool   `json:"confirm"`
	}
	err := server.AskAll(ctx, server.FormQuestion("first", "The first name?", &first), server.FormQuestion("second", "The second name?", &second))
	return fmt.Sprint(first.Name, " and ", second.Name), err
}

func askThenWork(ctx context.Context, _ none) (string, error) {
	answer, err := server.Ask[struct {
		Name string `json:"name"`
	}](ctx, "user_name", "Your name?")
	if err != nil {
		return "", err
	}
	return "Hello, " + answer.Name, pause(ctx, time.Second)
}
