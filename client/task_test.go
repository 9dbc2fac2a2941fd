package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

var mustBeTask = server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, TTL: time.Hour, Poll: time.Second}}

// methodLog records the methods of a server's requests.
type methodLog struct {
	mu  sync.Mutex
	all []string
}

func (l *methodLog) wrap(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		l.mu.Lock()
		l.all = append(l.all, req.Method)
		l.mu.Unlock()
		return next.ServeMCP(ctx, req)
	})
}

func (l *methodLog) count(method string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.all {
		if m == method {
			n++
		}
	}
	return n
}

// taskServer has a tool that asks, reports progress, and works for some seconds.
func taskServer() (*server.Server, *methodLog) {
	s := server.New("tasks", "1", nil)
	server.Tool(s, "work", "", func(ctx context.Context, in struct {
		Seconds int `json:"seconds"`
	}) (string, error) {
		server.Progress(ctx, 1, 2, "asking")
		name, err := server.Ask[string](ctx, "name", "Who?")
		if err != nil {
			return "", err
		}
		server.Progress(ctx, 2, 2, "working for "+name)
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
			return "done for " + name, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}, mustBeTask)
	server.Tool(s, "quick", "", func(context.Context, struct{}) (string, error) { return "quick", nil })
	log := &methodLog{}
	s.Use(log.wrap)
	return s, log
}

// A call waits for its task: it polls at the server's interval or listens, answers questions once,
// and shows the status messages as progress.
func TestCallWaitsForTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := taskServer()
		asked := 0
		c := connect(t, s, client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"Ann"}`)}, nil
		}}})
		var progress []string
		began := time.Now()
		got, err := client.Call[string](t.Context(), c, "work", map[string]int{"seconds": 10}, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
			progress = append(progress, fmt.Sprint(p.Progress, " ", p.Message))
		}})
		if got != "done for Ann" || err != nil || asked != 1 {
			t.Errorf("%q, %v, asked %d times", got, err, asked)
		}
		if took := time.Since(began); took < 10*time.Second || took > 13*time.Second || log.count("tasks/get") > 6 || log.count("tasks/cancel") != 0 {
			t.Errorf("took %v: %v", took, log.all)
		}
		if want := []string{"0 asking", "1 working for Ann"}; !slices.Equal(progress, want) {
			t.Errorf("progress %q, want %q", progress, want)
		}
		res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "work", Arguments: json.RawMessage(`{"seconds":1}`)})
		if err != nil || res.Content[0].Text != "done for Ann" {
			t.Errorf("%+v, %v", res, err)
		}
		if got, err := client.Call[string](t.Context(), c, "quick", nil); got != "quick" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// If a call ends without its task, the task is cancelled: when the context ends, when a limit ends
// it, and when a question has no answer.
func TestCallCancelsTask(t *testing.T) {
	refuse := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, errors.New("no terminal")
	}
	for name, test := range map[string]struct {
		elicit func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error)
		total  time.Duration
		want   string
	}{
		"the context":   {accept(`{"value":"Ann"}`), 0, "context deadline exceeded"},
		"before a poll": {accept(`{"value":"Ann"}`), time.Millisecond, "1ms"},
		"a limit":       {accept(`{"value":"Ann"}`), 30 * time.Second, "30s"},
		"no answer":     {refuse, 0, "no terminal"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log := taskServer()
				c := connect(t, s, client.Options{Answers: client.Answers{Elicit: test.elicit}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := client.Call[string](ctx, c, "work", map[string]int{"seconds": 1000}, client.CallOptions{Limits: client.Limits{Total: test.total}})
				if !strings.Contains(fmt.Sprint(err), test.want) || log.count("tasks/cancel") != 1 {
					t.Errorf("%v: %v", err, log.all)
				}
			})
		})
	}
}

// A handle of a task outlives its client.
func TestTaskHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := taskServer()
		options := client.Options{Answers: client.Answers{Elicit: accept(`{"value":"Ann"}`)}}
		first := connect(t, s, options)
		task, result, err := first.StartTool(t.Context(), mcp.CallToolParams{Name: "work", Arguments: json.RawMessage(`{"seconds":60}`)})
		if task == nil || result != nil || err != nil {
			t.Fatal(task, result, err)
		}
		synctest.Wait()
		state, err := task.State(t.Context())
		if err != nil || state.Status != "input_required" || state.Message != "asking" || state.TTL != time.Hour || state.Poll != time.Second || state.Created.IsZero() || len(state.Questions) != 1 {
			t.Fatalf("%+v, %v", state, err)
		}
		for key := range state.Questions {
			if err := task.Answer(t.Context(), map[string]json.RawMessage{key: json.RawMessage(`{"action":"accept","content":{"value":"Bob"}}`)}); err != nil {
				t.Error(err)
			}
		}
		first.Close()

		resumed := connect(t, s, options).Resume(task.ID())
		if result, err = resumed.Wait(t.Context()); err != nil || result.Content[0].Text != "done for Bob" {
			t.Errorf("%+v, %v", result, err)
		}
		if state, err = resumed.State(t.Context()); err != nil || state.Status != "completed" || state.Result.Content[0].Text != "done for Bob" {
			t.Errorf("%+v, %v", state, err)
		}
		if _, result, err = connect(t, s, options).StartTool(t.Context(), mcp.CallToolParams{Name: "quick"}); err != nil || result.Content[0].Text != "quick" {
			t.Errorf("%+v, %v", result, err)
		}
		if n := log.count("tasks/cancel"); n != 0 {
			t.Errorf("cancelled %d times", n)
		}
	})
}

// A wait ends with the error of a task that was cancelled or has failed, or that the server does
// not know. A wait that is abandoned leaves the task alone.
func TestTaskWaitErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := taskServer()
		server.Tool(s, "fail", "", func(context.Context, struct{}) (string, error) { return "", mcp.Errorf(-31000, "odd") }, mustBeTask)
		c := connect(t, s, client.Options{Answers: client.Answers{Elicit: accept(`{"value":"Ann"}`)}})
		begin := func(tool, arguments string) *client.Task {
			task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
			if err != nil {
				t.Fatal(err)
			}
			return task
		}
		cancelled := begin("work", `{"seconds":1000}`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := cancelled.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || log.count("tasks/cancel") != 0 {
			t.Errorf("%v, cancelled %d times", err, log.count("tasks/cancel"))
		}
		if err := cancelled.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		_, err := cancelled.Wait(t.Context())
		mustBe(t, err, client.ErrTaskCancelled)
		var odd *mcp.Error
		if _, err := client.Call[string](t.Context(), c, "fail", nil); !errors.As(err, &odd) || odd.Code != -31000 {
			t.Errorf("got %v", err)
		}
		failed := begin("fail", `{}`)
		synctest.Wait()
		if state, err := failed.State(t.Context()); err != nil || !errors.As(state.Err, &odd) {
			t.Errorf("%+v, %v", state, err)
		}
		if _, err := c.Resume("unknown").Wait(t.Context()); !errors.As(err, &odd) || odd.Code != -32602 {
			t.Errorf("got %v", err)
		}
	})
}

// Each request about a task carries its id in the field Mcp-Name.
func TestTaskOverHTTP(t *testing.T) {
	t.Parallel()
	s := server.New("tasks", "1", nil)
	server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) { return server.Ask[string](ctx, "name", "Who?") }, mustBeTask)
	h := streamable.Handler(s, nil)
	var named sync.Map // the values of Mcp-Name, by method
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		named.Store(r.Header.Get("Mcp-Method"), r.Header.Get("Mcp-Name"))
		h.ServeHTTP(w, r)
	}))
	defer web.Close()
	c, err := client.Dial(t.Context(), web.URL, &client.Options{Answers: client.Answers{Elicit: accept(`{"value":"Ann"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := client.Call[string](t.Context(), c, "ask", nil); got != "Ann" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Answer(t.Context(), map[string]json.RawMessage{"none": json.RawMessage(`{"action":"cancel"}`)}); err != nil {
		t.Error(err)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = task.Wait(t.Context())
	mustBe(t, err, client.ErrTaskCancelled)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if name, _ := named.Load(method); name != task.ID() {
			t.Errorf("Mcp-Name of %s is %v, want %s", method, name, task.ID())
		}
	}
}

// A task that requires input without new questions is given up and cancelled.
func TestStuckTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, cancelled := 0, 0
		const task = `"taskId":"1","createdAt":"2026-11-24T00:00:00Z","lastUpdatedAt":"2026-11-24T00:00:00Z","ttlMs":null,"pollIntervalMs":1000`
		h := handlers{
			mcp.MethodDiscover: returns(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
			mcp.MethodCallTool: func(context.Context, *mcp.Request) (*mcp.Result, error) {
				return &mcp.Result{Type: "task", Raw: json.RawMessage(`{` + task + `,"status":"working"}`)}, nil
			},
			"tasks/get":    returns(`{` + task + `,"status":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}}`),
			"tasks/update": returns(`{}`),
			"tasks/cancel": func(context.Context, *mcp.Request) (*mcp.Result, error) { cancelled++; return raw(`{}`), nil },
		}
		c := connect(t, extended{h}, client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
		}}})
		_, err := client.Call[string](t.Context(), c, "t", nil)
		if !strings.Contains(fmt.Sprint(err), "the task is stuck") || asked != 1 || cancelled != 1 {
			t.Errorf("%v, asked %d, cancelled %d", err, asked, cancelled)
		}
	})
}

// A task is no answer to a request other than tools/call.
func TestTaskForAnotherMethod(t *testing.T) {
	h := handlers{
		mcp.MethodDiscover: returns(`{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
		mcp.MethodGetPrompt: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			if strings.Contains(string(req.ClientCapabilities), "tasks") {
				t.Error("declared")
			}
			return &mcp.Result{Type: "task", Raw: json.RawMessage(`{"taskId":"1"}`)}, nil
		},
	}
	c := dialWire(t, h, client.Options{})
	method := mcp.Method[mcp.GetPromptParams, mcp.Response]{Name: mcp.MethodGetPrompt}
	if _, err := client.Do(t.Context(), c, method, mcp.GetPromptParams{Name: "p"}); err == nil || !strings.Contains(err.Error(), `"task"`) {
		t.Errorf("got %v", err)
	}
}

// extended is a server whose transports know tasks.
type extended struct{ handlers }

func (extended) Extensions() []mcp.Extension {
	return []mcp.Extension{{ID: "io.modelcontextprotocol/tasks", ResultTypes: []mcp.ResultType{"task"}}}
}
