package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
)

// Clients of 2025-11-25 get the tasks of that revision: each line of the transcripts is checked
// against its schema.
func TestLegacyTasks(t *testing.T) {
	handler := func() mcp.Handler {
		s := newServer(server.Options{PageSize: 3})
		work := func(ctx context.Context, _ struct{}) (string, error) {
			server.Progress(ctx, 1, 2, "half")
			time.Sleep(2 * time.Second)
			return "done", nil
		}
		server.Tool(s, "must", "", work, must)
		server.Tool(s, "may", "", work, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMay, TTL: time.Minute}})
		server.Tool(s, "never", "", work)
		server.Tool(s, "fails", "", func(context.Context, struct{}) (string, error) { return "", errors.New("out of paper") }, must)
		server.Tool(s, "errs", "", func(context.Context, struct{}) (string, error) {
			return "", &mcp.Error{Code: -32050, Message: "no printer", Data: []byte(`{"tray":2}`)}
		}, must)
		server.Tool(s, "sleeps", "", func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() }, must)
		server.Tool(s, "asks", "", func(ctx context.Context, _ struct{}) (string, error) {
			answer, err := server.Ask[struct {
				Name string `json:"name"`
			}](ctx, "who", "Who?")
			if err == nil || errors.Is(err, server.ErrDeclined) {
				time.Sleep(10 * time.Millisecond) // the poll after the answer finds the task at work
			}
			return "hello " + answer.Name, err
		}, must)
		return s
	}
	user := transport.ServerOptions{Principal: mcp.Principal{ID: "ann"}}
	mcptest.Transcript(t, "testdata/transcripts/tasks-2025-11-25.txt", handler, user)
	mcptest.Transcript(t, "testdata/transcripts/tasks-other-eras.txt", handler, user)
	mcptest.Transcript(t, "testdata/transcripts/tasks-2025-11-25-polled.txt", func() mcp.Handler { return withoutTaskChanges{handler()} })
	mcptest.Transcript(t, "testdata/transcripts/tasks-2025-11-25-unanswered.txt", func() mcp.Handler { return withoutTaskChanges{handler()} },
		transport.ServerOptions{AskTimeout: 5 * time.Second})
}

// withoutTaskChanges is a handler that refuses subscriptions. It knows the extension of tasks.
type withoutTaskChanges struct{ mcp.Handler }

func (h withoutTaskChanges) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method == mcp.MethodListen {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return h.Handler.ServeMCP(ctx, req)
}

func (withoutTaskChanges) Extensions() []mcp.Extension {
	return []mcp.Extension{mcpwire.TasksExtension()}
}
