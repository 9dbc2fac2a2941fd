package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

var revision20251125 = client.Wire{Revision: mcp.Revision20251125}

// A call of a server of 2025-11-25 waits for the task that the tool needs. The questions of the
// task are asked while its result is awaited.
func TestCallWaitsForLegacyTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := taskServer()
		asked := 0
		elicit := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			time.Sleep(8 * time.Minute) // a person does not count against the limits of the call
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"Ann"}`)}, nil
		}
		c := connect(t, s, client.Options{Wire: revision20251125, Answers: client.Answers{Elicit: elicit}, Limits: client.Limits{Total: 5 * time.Minute}})
		var progress []string
		got, err := client.Call[string](t.Context(), c, "work", map[string]int{"seconds": 10}, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
			progress = append(progress, fmt.Sprint(p.Progress, " ", p.Message))
		}})
		if got != "done for Ann" || err != nil || asked != 1 || log.count("tasks/update") != 1 {
			t.Errorf("%q, %v, asked %d times: %v", got, err, asked, log.all)
		}
		if want := []string{"0 asking", "1 working for Ann"}; !slices.Equal(progress, want) {
			t.Errorf("progress %q, want %q", progress, want)
		}
		if got, err := client.Call[string](t.Context(), c, "quick", nil); got != "quick" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if n := log.count("tools/list"); n != 1 {
			t.Errorf("%d lists of tools, want 1", n)
		}
	})
}

// legacyTaskServer has a tool for each end of a task.
func legacyTaskServer() (*server.Server, *methodLog) {
	s, log := taskServer()
	server.Tool(s, "may", "", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 2, "half")
		time.Sleep(3 * time.Second)
		return "may", nil
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMay, Poll: time.Second}})
	server.Tool(s, "fails", "", func(context.Context, struct{}) (string, error) { return "", errors.New("out of paper") }, mustBeTask)
	server.Tool(s, "errs", "", func(context.Context, struct{}) (string, error) { return "", mcp.Errorf(-32050, "no printer") }, mustBeTask)
	server.Tool(s, "sleeps", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, mustBeTask)
	return s, log
}

// A task of 2025-11-25 has the same results and errors as a call.
func TestLegacyTaskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := legacyTaskServer()
		c := connect(t, s, client.Options{Wire: revision20251125})
		if got, err := client.Call[string](t.Context(), c, "may", nil); got != "may" || err != nil || log.count("tasks/get") != 0 {
			t.Errorf("a tool with optional tasks: %q, %v, %v", got, err, log.all)
		}
		res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "fails"})
		if err != nil || !res.IsError || res.Content[0].Text != "out of paper" || res.Meta != nil {
			t.Errorf("%+v, %v", res, err)
		}
		_, err = c.CallTool(t.Context(), mcp.CallToolParams{Name: "errs"})
		if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != -32050 || e.Message != "no printer" {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err = c.CallTool(ctx, mcp.CallToolParams{Name: "sleeps"}); !errors.Is(err, context.DeadlineExceeded) || log.count("tasks/cancel") != 1 {
			t.Errorf("%v, %v", err, log.all)
		}
	})
}

// A handle of a task of 2025-11-25 shows its state, waits for it and cancels it.
func TestLegacyTaskHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := legacyTaskServer()
		elicit := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"Bob"}`)}, nil
		}
		c := connect(t, s, client.Options{Wire: revision20251125, Answers: client.Answers{Elicit: elicit}})
		start := func(tool, arguments string) *client.Task {
			task, res, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
			if task == nil {
				t.Fatalf("%s: no task: %+v, %v", tool, res, err)
			}
			time.Sleep(time.Millisecond)
			return task
		}
		state := func(task *client.Task) client.TaskState {
			s, err := task.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return *s
		}
		may := start("may", "{}")
		if s := state(may); s.Status != "working" || s.Message != "half" || s.TTL != time.Hour || s.Poll != time.Second {
			t.Errorf("%+v", s)
		}
		if res, err := c.Resume(may.ID()).Wait(t.Context()); err != nil || res.Content[0].Text != "may" {
			t.Errorf("%+v, %v", res, err)
		}
		if s := state(may); s.Status != "completed" || s.Result == nil || s.Result.Content[0].Text != "may" {
			t.Errorf("%+v", s)
		}
		if err := may.Cancel(t.Context()); err != nil {
			t.Errorf("a task that has ended: %v", err)
		}
		if err := c.Resume("unknown").Cancel(t.Context()); err == nil {
			t.Error("an unknown task was cancelled")
		}
		if task, res, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: "quick"}); task != nil || err != nil || res.Content[0].Text != "quick" {
			t.Errorf("a tool without tasks: %+v, %+v, %v", task, res, err)
		}
		errs := start("errs", "{}")
		if s := state(errs); s.Status != "failed" || s.Err == nil || !strings.Contains(s.Err.Error(), "no printer") {
			t.Errorf("%+v", s)
		}
		sleeps := start("sleeps", "{}")
		if err := sleeps.Cancel(t.Context()); err != nil || state(sleeps).Status != "cancelled" {
			t.Errorf("%v, %+v", err, state(sleeps))
		}
		if _, err := sleeps.Wait(t.Context()); !errors.Is(err, client.ErrTaskCancelled) {
			t.Error(err)
		}
		work := start("work", `{"seconds":1}`)
		if s := state(work); s.Status != "input_required" || len(s.Questions) != 0 {
			t.Errorf("%+v", s)
		}
		if err := work.Answer(t.Context(), map[string]json.RawMessage{"name": nil}); err == nil || !strings.Contains(err.Error(), "wait for the task") {
			t.Errorf("%v", err)
		}
		if res, err := work.Wait(t.Context()); err != nil || res.Content[0].Text != "done for Bob" {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// A tool that gets tasks after the first call is called as one: the list of tools is read again.
func TestLegacyTaskToolChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := taskServer()
		c := connect(t, s, client.Options{Wire: revision20251125})
		if _, err := client.Call[string](t.Context(), c, "quick", nil); err != nil {
			t.Fatal(err)
		}
		server.Tool(s, "new", "", func(context.Context, struct{}) (string, error) { return "new", nil }, mustBeTask)
		time.Sleep(time.Second)
		if got, err := client.Call[string](t.Context(), c, "new", nil); got != "new" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A task of 2025-11-25 ends when the client refuses its question: it would wait for the answer
// until its time to live is over.
func TestRefusedQuestionEndsLegacyTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := taskServer()
		c := connect(t, s, client.Options{Wire: revision20251125, Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("no terminal")
		}}})
		task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: "work", Arguments: json.RawMessage(`{"seconds":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := task.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "the client refused elicitation/create") {
			t.Errorf("%v", err)
		}
		if s, err := task.State(t.Context()); err != nil || s.Status != "cancelled" {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// While the result of a task of 2025-11-25 is awaited, the status messages of the task are
// progress, and signs of life.
func TestLegacyTaskReportsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := taskServer()
		server.Tool(s, "steps", "", func(ctx context.Context, in struct {
			Silent bool `json:"silent,omitzero"`
		}) (string, error) {
			if _, err := server.Ask[string](ctx, "name", "Who?"); err != nil {
				return "", err
			}
			for i := range 10 {
				if !in.Silent {
					server.Progress(ctx, float64(i), 10, fmt.Sprint("step ", i))
				}
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			return "done", nil
		}, mustBeTask)
		c := connect(t, s, client.Options{Wire: revision20251125, Answers: client.Answers{Elicit: accept(`{"value":"Ann"}`)}, Limits: client.Limits{Idle: 2 * time.Minute}})
		var progress []string
		got, err := client.Call[string](t.Context(), c, "steps", nil, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
			progress = append(progress, p.Message)
		}})
		if got != "done" || err != nil || !slices.Contains(progress, "step 9") {
			t.Errorf("%q, %v: %q", got, err, progress)
		}
		var timeout *client.TimeoutError
		if _, err := client.Call[string](t.Context(), c, "steps", map[string]bool{"silent": true}); !errors.As(err, &timeout) || timeout.Kind != client.TimeoutIdle {
			t.Errorf("a silent task: %v", err)
		}
	})
}
