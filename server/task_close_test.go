package server_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/taskstore"
)

// A task that works when its server closes continues with the next server, as after a crash.
func TestTaskOutlivesClose(t *testing.T) {
	t.Parallel()
	store := taskstore.OnDisk(filepath.Join(t.TempDir(), "tasks"))
	t.Cleanup(func() { store.Close() })
	started, ended := make(chan struct{}), make(chan struct{})
	open := func(work func(context.Context, struct{}) (string, error)) *server.Server {
		s := server.New("stored", "1", &server.Options{Tasks: store})
		server.Tool(s, "look", "", work, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}, Annotations: mcp.ReadOnly})
		return s
	}
	first := open(func(ctx context.Context, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	})
	id := beginTask(t, first, as("ann", taskRequest("tools/call", `{"name":"look","arguments":{}}`))).TaskID
	<-started
	first.Close()
	<-ended
	for range 3 { // the closed server starts nothing, and fails nothing
		if task := getTask(t, first, "ann", id); task.Status != mcpwire.TaskWorking {
			t.Fatalf("%+v", task)
		}
	}
	second := open(func(context.Context, struct{}) (string, error) { return "done", nil })
	polltest.Until(t, "the next server has run the tool", func() bool {
		task := getTask(t, second, "ann", id)
		if task.Status == mcpwire.TaskFailed {
			t.Fatalf("%+v", task)
		}
		return task.Status == mcpwire.TaskCompleted
	})
}
