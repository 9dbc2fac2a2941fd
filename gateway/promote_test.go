package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

func init() { roles["slow"] = func() { _ = stdio.Serve(context.Background(), newSlowUpstream()) } }

// newSlowUpstream returns a server with one tool that makes tasks. Its tools wait for a call of
// release.
func newSlowUpstream() *server.Server {
	s := server.New("slow", "1", &server.Options{Logger: quiet})
	released := make(chan struct{}, 1)
	wait := func(ctx context.Context) error {
		server.Progress(ctx, 1, 2, "half")
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	server.Tool(s, "release", "", func(context.Context, nothing) (string, error) {
		released <- struct{}{}
		return "released", nil
	})
	server.Tool(s, "wait", "", func(ctx context.Context, _ nothing) (string, error) { return "rested", wait(ctx) })
	server.Tool(s, "refuse", "", func(ctx context.Context, _ nothing) (string, error) {
		return "", errors.Join(wait(ctx), errors.New("out of paper"))
	})
	type reply struct{ Name string }
	server.Tool(s, "ask", "", func(ctx context.Context, _ nothing) (string, error) {
		if _, err := server.Once(ctx, "rest", func(ctx context.Context) (bool, error) { return true, wait(ctx) }); err != nil {
			return "", err
		}
		answer, err := server.Ask[reply](ctx, "who", "Who are you?")
		return "Hello, " + answer.Name, err
	})
	server.Tool(s, "ask_first", "", func(ctx context.Context, _ nothing) (string, error) {
		answer, err := server.Ask[reply](ctx, "who", "Who are you?")
		if err != nil {
			return "", err
		}
		if _, err := server.Once(ctx, "rest", func(ctx context.Context) (bool, error) { return true, wait(ctx) }); err != nil {
			return "", err
		}
		return "Hello, " + answer.Name, nil
	})
	server.Tool(s, "own_task", "", func(ctx context.Context, _ nothing) (string, error) { return "rested", wait(ctx) },
		server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
	addLife(s)
	return s
}

// promoting returns a gateway that makes tasks of the slow calls of a child process of a revision.
func promoting(t *testing.T, upstream mcp.Revision, after time.Duration) *gateway.Gateway {
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow"), Options: client.Options{Wire: client.Wire{Revision: upstream}}})
	settle(t, h)
	return gatewayOf(t, h, gateway.Options{TaskAfter: after})
}

// A slow call of an upstream without tasks becomes a task: with its progress as messages, its
// questions, its result and its cancellation.
func TestSlowCallsBecomeTasks(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		t.Run(string(upstream), func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 10)
			c := dial(t, promoting(t, upstream, 20*time.Millisecond), client.Options{Answers: answerAda(asked)})
			release := func() {
				if got, err := client.Call[string](t.Context(), c, "up__release", nil); err != nil || got != "released" {
					t.Errorf("%q, %v", got, err)
				}
			}
			for tool, want := range map[string]string{"wait": "rested", "refuse": "out of paper", "ask": "Hello, Ada"} {
				task := startTask(t, c, "up__"+tool)
				polltest.Until(t, "a message", func() bool { return stateOf(t, task).Message == "half" })
				release()
				res, err := task.Wait(t.Context())
				if err != nil || res.Content[0].Text != want || res.IsError != (tool == "refuse") {
					t.Errorf("%s: %+v, %v", tool, res, err)
				}
			}
			if q := <-asked; !strings.Contains(q, "Who are you?") || strings.Count(q, "The server up asks") != 1 || len(asked) > 0 {
				t.Errorf("asked %q, and %d more", q, len(asked))
			}
			task := startTask(t, c, "up__hang")
			if err := task.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			polltest.Until(t, "the end of the call", func() bool {
				ended, err := client.Call[string](t.Context(), c, "up__ended", nil)
				return err == nil && ended == "1"
			})
			if state := stateOf(t, task); state.Status != "cancelled" {
				t.Errorf("%+v", state)
			}
		})
	}
}

// A question before the time is over belongs to the call, and the call may become a task
// afterwards.
func TestSlowCallAfterQuestion(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		t.Run(string(upstream), func(t *testing.T) {
			t.Parallel()
			polltest.UntilLongEnough(t, time.Second, func(after time.Duration) error {
				asked := make(chan string, 10)
				c := dial(t, promoting(t, upstream, after), client.Options{Answers: answerAda(asked)})
				task := startTask(t, c, "up__ask_first")
				switch len(asked) {
				case 0:
					return errors.New("the call has become a task before its question")
				case 1:
				default:
					t.Errorf("asked %d times before the task", len(asked))
				}
				if _, err := client.Call[string](t.Context(), c, "up__release", nil); err != nil {
					t.Error(err)
				}
				if res, err := task.Wait(t.Context()); err != nil || res.Content[0].Text != "Hello, Ada" || len(asked) != 1 {
					t.Errorf("%+v, %v, asked %d times", res, err, len(asked))
				}
				return nil
			})
		})
	}
}

// Calls of clients that have not declared the extension stay calls, and quick calls too.
func TestCallsThatStayCalls(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		g := promoting(t, upstream, 20*time.Millisecond)
		ended := make(chan string, 1)
		go func() {
			res, err := g.ServeMCP(t.Context(), request("", `{"name":"up__wait","arguments":{}}`))
			ended <- fmt.Sprintf("%s %s %v", res.Type, res.Raw, err)
		}()
		// A later call has become a task, so this one has taken long enough.
		if res, err := g.ServeMCP(t.Context(), taskRequest("", mcp.MethodCallTool, `{"name":"up__wait","arguments":{}}`)); err != nil || res.Type != mcpwire.ResultTask {
			t.Errorf("%+v, %v", res, err)
		}
		time.Sleep(100 * time.Millisecond)
		select {
		case got := <-ended:
			t.Fatalf("the call has ended: %s", got)
		default:
		}
		for range 2 {
			if _, err := g.ServeMCP(t.Context(), request("", `{"name":"up__release","arguments":{}}`)); err != nil {
				t.Error(err)
			}
		}
		if got := <-ended; !strings.Contains(got, "rested") || strings.HasPrefix(got, string(mcpwire.ResultTask)) {
			t.Errorf("%s: %s", upstream, got)
		}
		quick := promoting(t, upstream, time.Hour)
		res, err := quick.ServeMCP(t.Context(), taskRequest("", mcp.MethodCallTool, `{"name":"up__pid","arguments":{}}`))
		if err != nil || res.Type != "" {
			t.Errorf("%s: %+v, %v", upstream, res, err)
		}
	}
}

// A task ends at once with its process: it has failed with the cause, whether the gateway hosts it
// or the server has made it and was started again.
func TestTasksOfProcessesThatDied(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 20 * time.Millisecond} {
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
		settle(t, h)
		c := dial(t, gatewayOf(t, h, gateway.Options{TaskAfter: after}), client.Options{})
		tool := "up__hang"
		if after == 0 {
			tool = "up__own_task"
		}
		task := startTask(t, c, tool)
		pid, err := client.Call[string](t.Context(), c, "up__pid", nil)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.Atoi(pid)
		process, err := os.FindProcess(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, "the end of the task", func() bool {
			state, err := task.State(t.Context())
			return err == nil && state.Status == "failed" && state.Err != nil
		})
		if state := stateOf(t, task); !strings.Contains(state.Err.Error(), "the server up") {
			t.Errorf("%v", state.Err)
		}
	}
}
