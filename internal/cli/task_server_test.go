package cli

import (
	"context"
	"os"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// taskServerWord makes the test binary a server of tasks.
const taskServerWord = "a-server-of-tasks"

// newTaskServer returns a server with a tool that makes a task and asks, and one that makes none.
func newTaskServer() *server.Server {
	s := server.New("tasks", "1", nil)
	server.Tool(s, "work", "Asks and works.", func(ctx context.Context, _ struct{}) (string, error) {
		name, err := server.Ask[string](ctx, "name", "Who are you?")
		if err != nil {
			return "", err
		}
		return "done for " + name, nil
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
	server.Tool(s, "await", "Waits for a file.", func(ctx context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		for {
			if _, err := os.Stat(in.Path); err == nil {
				return "the file is there", nil
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
	server.Tool(s, "quick", "Answers at once.", func(context.Context, struct{}) (string, error) { return "quick", nil })
	server.Tool(s, "linger", "Works until it is cancelled, and makes no task itself.", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 0, "lingering")
		<-ctx.Done()
		return "", ctx.Err()
	})
	server.Tool(s, "nap", "Takes a moment.", func(context.Context, struct{}) (string, error) {
		time.Sleep(500 * time.Millisecond)
		return "rested", nil
	})
	return s
}
