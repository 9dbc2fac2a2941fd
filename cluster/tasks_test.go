package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

var must = server.TaskOptions{Mode: server.TaskMust, Poll: 50 * time.Millisecond}

// working adds the tools of a test with tasks. hold and once run until release is closed or the
// task ends; begun gets the replica of each run, ended the cause of each end.
func working(begun chan<- *replicaServer, ended chan<- error, release <-chan struct{}) func(*replicaServer) {
	return func(r *replicaServer) {
		work := func(ctx context.Context, _ struct{}) (string, error) {
			begun <- r
			select {
			case <-release:
				return "done", nil
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return "", ctx.Err()
			}
		}
		server.Tool(r.server, "hold", "", work, server.ToolOptions{Task: must, Annotations: mcp.ReadOnly})
		server.Tool(r.server, "once", "", work, server.ToolOptions{Task: must})
		server.Tool(r.server, "greet", "", func(ctx context.Context, _ struct{}) (string, error) {
			name, err := server.Ask[string](ctx, "name", "Who?")
			return "Hello, " + name, err
		}, server.ToolOptions{Task: must})
	}
}

// A task is followed, answered and cancelled at any replica.
func TestTasks(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan *replicaServer, 10), make(chan error, 10)
	_, front := startReplicas(t, working(begun, ended, nil))
	inEras(t, front, func(t *testing.T, c *client.Client) {
		for range 3 {
			if got := call(t, c, "greet"); got != "Hello, Ada" {
				t.Error(got)
			}
			task := start(t, c, "hold")
			<-begun
			if err := task.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "cancelled") {
				t.Errorf("the run has ended with %v", err)
			}
			if _, err := task.Wait(t.Context()); !errors.Is(err, client.ErrTaskCancelled) {
				t.Error(err)
			}
		}
	})
}

func start(t *testing.T, c *client.Client, tool string) *client.Task {
	t.Helper()
	task, result, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: tool})
	if err != nil || task == nil {
		t.Fatalf("%v, %v", result, err)
	}
	return task
}

// When the replica that runs a task closes, another one runs it again if that is safe, and fails it
// otherwise.
func TestTaskOfClosedReplica(t *testing.T) {
	t.Parallel()
	for _, revision := range eras {
		t.Run(string(revision), func(t *testing.T) {
			t.Parallel()
			begun, ended, release := make(chan *replicaServer, 10), make(chan error, 10), make(chan struct{})
			_, front := startReplicas(t, working(begun, ended, release))
			c := front.dial(t, revision)
			held := start(t, c, "hold")
			runner := <-begun
			once := start(t, c, "once")
			other := <-begun
			for _, r := range slices.Compact([]*replicaServer{runner, other}) {
				front.remove(r)
				r.close()
			}
			polltest.Until(t, "the task that may run only once fails", func() bool {
				state, err := once.State(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return state.Status == "failed"
			})
			if _, err := once.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
				t.Errorf("the task that may run only once: %v", err)
			}
			state, err := held.State(t.Context())
			if err != nil || state.Status != "working" {
				t.Fatalf("%+v, %v", state, err)
			}
			if again := <-begun; again == runner {
				t.Error("the closed replica has run the task again")
			}
			close(release)
			result, err := held.Wait(t.Context())
			if err != nil || result.IsError || result.Content[0].Text != "done" {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}
