package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// withTasks declares everything that a client can declare, and tasks.
var withTasks = json.RawMessage(strings.TrimSuffix(everything, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`)

func taskRequest(method, params string) *mcp.Request {
	req := request(method, params)
	req.ClientCapabilities = withTasks
	return req
}

// must is the options of a tool that makes a task of each call at once.
var must = server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, TTL: time.Minute, Poll: time.Second}}

// beginTask calls the tool, which must make a task.
func beginTask(t testing.TB, s mcp.Handler, req *mcp.Request) mcpwire.Task {
	t.Helper()
	res, err := s.ServeMCP(t.Context(), req)
	if err != nil || res.Type != mcpwire.ResultTask {
		t.Fatalf("no task: %+v, %v", res, err)
	}
	return *res.Value.(*mcpwire.Task)
}

func getTask(t testing.TB, s mcp.Handler, principal, id string) mcpwire.Task {
	t.Helper()
	res, err := s.ServeMCP(t.Context(), as(principal, taskRequest("tasks/get", `{"taskId":"`+id+`"}`)))
	if err != nil || res.Type != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	return *res.Value.(*mcpwire.Task)
}

// about returns the members of a task that depend on its status.
func about(task mcpwire.Task) string {
	text := strings.TrimSuffix(task.Status+": "+task.StatusMessage, ": ")
	for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
		text += " " + key
	}
	return text + string(task.Result) + string(task.Error)
}

func updateTask(t testing.TB, s mcp.Handler, id, responses string) {
	t.Helper()
	want(t, serve(t, s, taskRequest("tasks/update", `{"taskId":"`+id+`","inputResponses":`+responses+`}`)), `{}`)
}

// A task is created before its function runs, shows its progress, and keeps its result until its
// time to live is over.
func TestTaskLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		server.Tool(s, "t", "", func(ctx context.Context, in struct {
			Label string `json:"label"`
		}) (string, error) {
			server.Progress(ctx, 1, 3, "")
			time.Sleep(100 * time.Millisecond)
			server.Progress(ctx, 2, 3, "almost")
			server.Log(ctx).Info("not sent")
			time.Sleep(10 * time.Second)
			return "done: " + in.Label, nil
		}, must)
		req := taskRequest(mcp.MethodCallTool, `{"name":"t","arguments":{"label":"x"}}`)
		req.ProgressToken, req.LogLevel = json.RawMessage("7"), mcp.LevelDebug
		task := beginTask(t, s, req)
		clear(req.Params) // the frame is reused after the answer
		if task.Status != "working" || *task.TTLMs != 60_000 || task.PollIntervalMs != 1000 || len(task.TaskID) < 26 || task.Result != nil {
			t.Errorf("%+v", task)
		}
		if at, err := time.Parse(time.RFC3339, task.CreatedAt); err != nil || time.Since(at).Abs() > time.Second {
			t.Errorf("created %q: %v", task.CreatedAt, err)
		}
		synctest.Wait()
		want(t, about(getTask(t, s, "", task.TaskID)), "working: 1 of 3")
		time.Sleep(time.Second)
		want(t, about(getTask(t, s, "", task.TaskID)), "working: almost")
		time.Sleep(10 * time.Second)
		ended := getTask(t, s, "", task.TaskID)
		want(t, about(ended), `completed{"content":[{"type":"text","text":"done: x"}],"resultType":"complete"}`)
		if ended.LastUpdatedAt <= task.LastUpdatedAt {
			t.Errorf("updated %s, created %s", ended.LastUpdatedAt, task.CreatedAt)
		}
		if notes := req.Peer.(*peer).params(); notes != nil {
			t.Errorf("a task has sent %v", notes)
		}
		time.Sleep(time.Minute)
		for _, method := range []string{"tasks/get", "tasks/cancel"} {
			want(t, serve(t, s, taskRequest(method, `{"taskId":"`+task.TaskID+`"}`)), "error -32602: there is no task with this id, or it has expired")
		}
	})
}

// A failed tool completes its task. Only a protocol error fails it.
func TestTaskEnds(t *testing.T) {
	for name, test := range map[string]struct {
		fn   func(context.Context) (string, error)
		want string
	}{
		"a tool error":     {func(context.Context) (string, error) { return "", errors.New("no disk") }, `completed{"content":[{"type":"text","text":"no disk"}],"isError":true,"resultType":"complete"}`},
		"a protocol error": {func(context.Context) (string, error) { return "", mcp.Errorf(-31000, "odd") }, `failed: odd{"code":-31000,"message":"odd"}`},
		"a panic":          {func(context.Context) (string, error) { panic("x") }, `failed: internal error{"code":-32603,"message":"internal error"}`},
		"a capability": {func(context.Context) (string, error) {
			return "", &mcp.CapabilityError{Required: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}
		},
			`failed: the client does not support questions for its folders (roots){"code":-32021,"message":"the client does not support questions for its folders (roots)","data":{"requiredCapabilities":{"roots":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) { return test.fn(ctx) }, must)
				task := beginTask(t, s, taskRequest(mcp.MethodCallTool, `{"name":"t"}`))
				synctest.Wait()
				want(t, about(getTask(t, s, "", task.TaskID)), test.want)
			})
		})
	}
}

// A tool that may make tasks answers a quick call with its result. A slow call becomes a task, and
// questions that it has asked before do not show in the task.
func TestTaskAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		server.Tool(s, "t", "", func(ctx context.Context, in struct {
			Seconds int `json:"seconds"`
		}) (string, error) {
			name, err := server.Ask[string](ctx, "name", "?")
			if err != nil {
				return "", err
			}
			server.Progress(ctx, 1, 2, "counting")
			time.Sleep(time.Duration(in.Seconds) * time.Second)
			return name, context.Cause(ctx)
		}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMay}})
		call := func(seconds int) *mcp.Request {
			params := json.RawMessage(fmt.Sprintf(`{"name":"t","arguments":{"seconds":%d}}`, seconds))
			req := taskRequest(mcp.MethodCallTool, string(params))
			state := stateOf(t, s, req)
			req.Params = retry(t, params, map[string]json.RawMessage{"name": json.RawMessage(accept(`{"value":"Ann"}`))}, state)
			req.ProgressToken = json.RawMessage("7")
			return req
		}
		want(t, serve(t, s, call(1)), textResult("Ann"))
		slow := call(5)
		task := beginTask(t, s, slow)
		want(t, about(task), "working: counting")
		if notes := slow.Peer.(*peer).params(); len(notes) != 1 {
			t.Errorf("before the task: %v", notes)
		}
		time.Sleep(4 * time.Second)
		wantPart(t, about(getTask(t, s, "", task.TaskID)), `completed{"content":[{"type":"text","text":"Ann"}]`)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.ServeMCP(ctx, call(1000)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that is cancelled before it is a task: %v", err)
		}
		plain := call(5)
		plain.ClientCapabilities = json.RawMessage(everything)
		want(t, serve(t, s, plain), textResult("Ann"))
	})
}

// A task asks under keys of its own, keeps no goroutine while it waits, and runs again with the
// answers. An answer that does not fit is asked for again under another key.
func TestTaskAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		runs, steps := 0, 0
		server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) {
			runs++
			if _, err := server.Once(ctx, "step", func(context.Context) (int, error) { steps++; return steps, nil }); err != nil {
				return "", err
			}
			var sure bool
			var name string
			if err := server.AskAll(ctx, server.FormQuestion("sure", "?", &sure), server.FormQuestion("name", "?", &name)); err != nil {
				return "", err
			}
			age, err := server.Ask[int](ctx, "age", "?")
			return fmt.Sprint(sure, name, age), err
		}, must)
		task := beginTask(t, s, taskRequest(mcp.MethodCallTool, `{"name":"t"}`))
		synctest.Wait()
		shows := func(status string) {
			t.Helper()
			synctest.Wait()
			wantPart(t, about(getTask(t, s, "", task.TaskID)), status)
		}
		shows("input_required name#1 sure#2")
		for key, q := range getTask(t, s, "", task.TaskID).InputRequests {
			wantPart(t, q.Method+string(q.Params), `elicitation/create{"mode":"form","message":"?","requestedSchema":{`)
			wantPart(t, string(q.Params), map[string]string{"name#1": `"string"`, "sure#2": `"boolean"`}[key])
		}
		updateTask(t, s, task.TaskID, `{"unknown":{"ignored":true},"sure#2":`+accept(`{"value":true}`)+`,"name#1":null}`)
		shows("input_required name#1")
		updateTask(t, s, task.TaskID, `{"sure#2":`+accept(`{"value":false}`)+`}`)
		shows("input_required name#1")
		if runs != 1 {
			t.Errorf("the function ran %d times before all answers were there", runs)
		}
		updateTask(t, s, task.TaskID, `{"name#1":`+accept(`{"value":7}`)+`}`)
		shows("input_required name#3")
		updateTask(t, s, task.TaskID, `{"name#3":`+accept(`{"value":"Ann"}`)+`}`)
		shows("input_required age#4")
		updateTask(t, s, task.TaskID, `{"age#4":`+accept(`{"value":40}`)+`}`)
		shows(`completed{"content":[{"type":"text","text":"trueAnn40"}]`)
		updateTask(t, s, task.TaskID, `{"age#4":`+accept(`{"value":41}`)+`}`)
		shows(`completed{"content":[{"type":"text","text":"trueAnn40"}]`)
		if runs != 4 || steps != 1 {
			t.Errorf("%d runs, %d steps", runs, steps)
		}
		want(t, serve(t, s, taskRequest("tasks/update", `{"taskId":"`+task.TaskID+`"}`)), "error -32602: tasks/update needs params.inputResponses, an object")
	})
}

// A task waits until the user has finished at a URL.
func TestTaskAsksURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var paid atomic.Bool
		server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) {
			err := server.AskURL(ctx, "pay", "?", "https://pay.example", func(context.Context) (bool, error) { return paid.Load(), nil })
			return "paid", err
		}, must)
		task := beginTask(t, s, taskRequest(mcp.MethodCallTool, `{"name":"t"}`))
		synctest.Wait()
		want(t, about(getTask(t, s, "", task.TaskID)), "input_required pay#1")
		updateTask(t, s, task.TaskID, `{"pay#1":{"action":"accept"}}`)
		time.Sleep(25 * time.Second)
		want(t, about(getTask(t, s, "", task.TaskID)), "working")
		paid.Store(true)
		time.Sleep(2 * time.Second)
		wantPart(t, about(getTask(t, s, "", task.TaskID)), `completed{"content":[{"type":"text","text":"paid"}]`)
	})
}

// A cancelled task stays cancelled, whatever its function returns. Its context ends, as it does
// when the task expires and when the server closes.
func TestTaskStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var cause error
		server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "ended all the same", nil
		}, must)
		server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) { return server.Ask[string](ctx, "k", "?") }, must)
		begin := func(tool string) string {
			id := beginTask(t, s, taskRequest(mcp.MethodCallTool, `{"name":"`+tool+`"}`)).TaskID
			synctest.Wait()
			return id
		}
		for range 2 {
			for _, tool := range []string{"t", "ask"} {
				id := begin(tool)
				for range 2 {
					want(t, serve(t, s, taskRequest("tasks/cancel", `{"taskId":"`+id+`"}`)), `{}`)
					synctest.Wait()
					want(t, about(getTask(t, s, "", id)), "cancelled: cancelled by the client")
				}
			}
		}
		wantPart(t, cause.Error(), "the client has cancelled the task")
		begin("t")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantPart(t, cause.Error(), "the task has reached its time to live")
		id := begin("t")
		waiting := begin("ask")
		s.Close()
		synctest.Wait()
		wantPart(t, cause.Error(), "the server has shut down")
		wantPart(t, about(getTask(t, s, "", id)), "completed")
		want(t, serve(t, s, taskRequest(mcp.MethodCallTool, `{"name":"t"}`)), `{"content":[{"type":"text","text":"the server has shut down (-32603)"}],"isError":true}`)
		updateTask(t, s, waiting, `{"k#1":`+accept(`{"value":"x"}`)+`}`)
		wantPart(t, about(getTask(t, s, "", waiting)), "failed: the server has shut down")
	})
}

func wantNoPart(t testing.TB, got, part string) {
	t.Helper()
	if strings.Contains(got, part) {
		t.Errorf("%s has %s", got, part)
	}
}
