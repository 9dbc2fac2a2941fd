package server_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/taskstore"
)

// storedServer returns a server whose tasks are in a folder, and a function that ends it as the end
// of its process would. The tools block for as long as block is true.
func storedServer(t *testing.T, folder string, block bool, runs *atomic.Int32) (*server.Server, func()) {
	t.Helper()
	store := taskstore.OnDisk(folder)
	s := server.New("stored", "1", &server.Options{Tasks: store})
	work := func(context.Context, struct{}) (string, error) {
		runs.Add(1)
		if block {
			<-t.Context().Done() // until the store is closed: a process that ends stores no end of the task
		}
		return "done", nil
	}
	task := server.TaskOptions{Mode: server.TaskMust}
	server.Tool(s, "once", "", work, server.ToolOptions{Task: task})
	server.Tool(s, "look", "", work, server.ToolOptions{Task: task, Annotations: mcp.ReadOnly})
	task.Takeover = true
	server.Tool(s, "again", "", work, server.ToolOptions{Task: task})
	server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		name, err := server.Ask[string](ctx, "name", "Who?")
		return "Hello, " + name, err
	}, server.ToolOptions{Task: task})
	end := func() { store.Close() }
	t.Cleanup(end)
	return s, end
}

// After the end of its process, a task that asks continues, and one that worked runs again or
// fails.
func TestTasksOutliveProcess(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "tasks")
	var before, after atomic.Int32
	first, end := storedServer(t, folder, true, &before)
	ids := map[string]string{}
	for _, tool := range []string{"once", "look", "again", "ask"} {
		ids[tool] = beginTask(t, first, as("ann", taskRequest("tools/call", `{"name":"`+tool+`","arguments":{}}`))).TaskID
	}
	await := func(s mcp.Handler, tool, status string) (last mcpwire.Task) {
		t.Helper()
		polltest.Until(t, tool+" is "+status, func() bool {
			last = getTask(t, s, "ann", ids[tool])
			return last.Status == status
		})
		return last
	}
	await(first, "ask", mcpwire.TaskInputRequired)
	polltest.Until(t, "the tools run", func() bool { return before.Load() == 3 })
	end()

	second, _ := storedServer(t, folder, false, &after)
	if failed := await(second, "once", mcpwire.TaskFailed); !strings.Contains(failed.StatusMessage, "has ended") || failed.Error == nil {
		t.Errorf("%+v", failed)
	}
	if after.Load() != 0 {
		t.Error("a tool ran again that may have an effect twice")
	}
	for _, tool := range []string{"look", "again"} {
		if done := await(second, tool, mcpwire.TaskCompleted); !strings.Contains(string(done.Result), "done") {
			t.Errorf("%+v", done)
		}
	}
	if after.Load() != 2 {
		t.Errorf("%d runs, want 2", after.Load())
	}
	for key := range await(second, "ask", mcpwire.TaskInputRequired).InputRequests {
		update := `{"taskId":"` + ids["ask"] + `","inputResponses":{"` + key + `":{"action":"accept","content":{"value":"Ann"}}}}`
		if _, err := second.ServeMCP(t.Context(), as("ann", taskRequest("tasks/update", update))); err != nil {
			t.Fatal(err)
		}
	}
	if done := await(second, "ask", mcpwire.TaskCompleted); !strings.Contains(string(done.Result), "Hello, Ann") {
		t.Errorf("%+v", done)
	}
	if _, err := second.ServeMCP(t.Context(), as("bob", taskRequest("tasks/get", `{"taskId":"`+ids["look"]+`"}`))); err == nil {
		t.Error("another principal sees a task")
	}
}

// Of many requests after the end of a process, one runs the tool again.
func TestTakeoverOnce(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "tasks")
	var before, after atomic.Int32
	first, end := storedServer(t, folder, true, &before)
	id := beginTask(t, first, as("ann", taskRequest("tools/call", `{"name":"again","arguments":{}}`))).TaskID
	end()
	second, _ := storedServer(t, folder, false, &after)
	all := make(chan error, 20)
	for range cap(all) {
		go func() {
			_, err := second.ServeMCP(context.Background(), as("ann", taskRequest("tasks/get", `{"taskId":"`+id+`"}`)))
			all <- err
		}()
	}
	for range cap(all) {
		if err := <-all; err != nil {
			t.Error(err)
		}
	}
	polltest.Until(t, "the end", func() bool { return getTask(t, second, "ann", id).Status == mcpwire.TaskCompleted })
	if time.Sleep(10 * time.Millisecond); after.Load() != 1 {
		t.Errorf("%d runs, want 1", after.Load())
	}
}
