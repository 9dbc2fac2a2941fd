package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Tasks belong to the principal, up to the limit. Other principals cannot tell
// them from tasks that do not exist.
func TestTasksOfPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hidden := false
		s := newServer(server.Options{MaxTasks: 2, Visible: func(_ context.Context, _ mcp.Principal, item server.Item) bool { return !hidden || item.Name != "t" }})
		slow := func(context.Context, struct{}) (string, error) { time.Sleep(3 * time.Second); return "x", nil }
		server.Tool(s, "t", "", slow, must)
		server.Tool(s, "may", "", slow, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMay, TTL: time.Minute}})
		call := func(principal, tool string) *mcp.Request {
			return as(principal, taskRequest(mcp.MethodCallTool, `{"name":"`+tool+`"}`))
		}
		id := beginTask(t, s, call("ann", "t")).TaskID
		beginTask(t, s, call("ann", "may"))
		wantPart(t, serve(t, s, call("ann", "t")), `too many tasks: at most 2 are kept`)
		want(t, serve(t, s, call("ann", "may")), textResult("x"))
		beginTask(t, s, call("bob", "t"))
		const unknown = "error -32602: there is no task with this id, or it has expired"
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			for principal, id := range map[string]string{"bob": id, "": id, "ann": "other"} {
				want(t, serve(t, s, as(principal, taskRequest(method, `{"taskId":"`+id+`","inputResponses":{}}`))), unknown)
			}
		}
		want(t, getTask(t, s, "ann", id).Status, "completed")
		hidden = true
		want(t, serve(t, s, as("ann", taskRequest("tasks/get", `{"taskId":"`+id+`"}`))), unknown)
		hidden = false
		time.Sleep(time.Minute)
		beginTask(t, s, call("ann", "t"))
		time.Sleep(5 * time.Second) // its function ends
	})
}

// Clients that declare the extension with the request get tasks, and only clients of revisions with
// tasks are told of them.
func TestTaskCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		want(t, serve(t, s, taskRequest("tasks/get", `{"taskId":"x"}`)), "error -32601: method not found: tasks/get")
		if e := s.Extensions(); len(e) != 1 {
			t.Errorf("%v", e)
		}
		discover := func(r mcp.Revision) string {
			req := taskRequest(mcp.MethodDiscover, "{}")
			req.Revision = r
			return serve(t, s, req)
		}
		wantNoPart(t, discover(mcp.LatestRevision), "tasks")
		server.Tool(s, "t", "", func(context.Context, struct{}) (string, error) { return "x", nil }, must)
		wantPart(t, discover(mcp.LatestRevision), `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
		wantNoPart(t, discover(mcp.Revision20250618), "tasks")

		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update", "tools/call"} {
			_, err := s.ServeMCP(t.Context(), request(method, `{"taskId":"unknown","name":"t"}`))
			var missing *mcp.CapabilityError
			if !errors.As(err, &missing) || missing.Required.Extensions["io.modelcontextprotocol/tasks"] == nil {
				t.Errorf("%s: %v", method, err)
			}
			undeclared := request(method, `{"taskId":"unknown","name":"t"}`)
			undeclared.Revision = mcp.Revision20251125
			wantPart(t, serve(t, s, undeclared), "error -32601: ")
			legacy := taskRequest(method, `{"taskId":"unknown","name":"t","task":{"ttl":1}}`)
			legacy.Revision = mcp.Revision20250618
			want(t, serve(t, s, legacy), map[bool]string{true: textResult("x"), false: "error -32601: method not found: " + method}[method == "tools/call"])
		}
		for _, method := range []string{"tasks/result", "tasks/list"} {
			want(t, serve(t, s, taskRequest(method, `{"taskId":"x"}`)), "error -32601: method not found: "+method)
		}
	})
}

// A task needs the scopes of its tool.
func TestTaskScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := must
		o.Scopes = []string{"write"}
		server.Tool(s, "t", "", func(context.Context, struct{}) (string, error) { return "x", nil }, o)
		id := beginTask(t, s, as("ann", taskRequest(mcp.MethodCallTool, `{"name":"t"}`))).TaskID
		params := json.RawMessage(`{"taskId":"` + id + `"}`)
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/result"} {
			for principal, want := range map[string]int{"ann": 1, "bob": 0} {
				if got := s.Scopes(t.Context(), mcp.Principal{ID: principal}, method, params); len(got) != want {
					t.Errorf("%s of %s needs %v", method, principal, got)
				}
			}
		}
		list := func(scopes ...string) string {
			req := as("ann", request("tasks/list", "{}"))
			req.Revision, req.Header, req.Principal.Scopes = mcp.Revision20251125, http.Header{}, scopes
			return serve(t, s, req)
		}
		wantPart(t, list("write"), id)
		want(t, list("read"), `{"tasks":[]}`)
	})
}

// The tasks of a tool that is removed fail, whether they run or wait for an answer. Tasks that have
// ended, and tasks of other tools, stay the same.
func TestTasksOfRemovedTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		causes := make(chan error, 1)
		hang := func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", ctx.Err()
		}
		server.Tool(s, "hang", "", hang, must)
		server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) { return server.Ask[string](ctx, "k", "?") }, must)
		server.Tool(s, "quick", "", func(context.Context, struct{}) (string, error) { return "x", nil }, must)
		ids := map[string]string{}
		for _, tool := range []string{"hang", "ask", "quick"} {
			ids[tool] = beginTask(t, s, as("ann", taskRequest(mcp.MethodCallTool, `{"name":"`+tool+`"}`))).TaskID
		}
		kept := beginTask(t, s, as("bob", taskRequest(mcp.MethodCallTool, `{"name":"ask"}`))).TaskID
		synctest.Wait()
		s.Remove(server.KindTool, "hang", "quick")
		want(t, about(getTask(t, s, "bob", kept)), "input_required k#1")
		s.Remove(server.KindTool, "ask")
		synctest.Wait()
		if cause := <-causes; cause == nil || !strings.Contains(cause.Error(), "the tool hang was removed") {
			t.Errorf("the function ended with %v", cause)
		}
		for tool, state := range map[string]string{"hang": "failed", "ask": "failed", "quick": "completed"} {
			task := getTask(t, s, "ann", ids[tool])
			if task.Status != state || state == "failed" && !strings.Contains(string(task.Error), "the tool "+tool+" was removed") {
				t.Errorf("%s: %s %s", tool, task.Status, task.Error)
			}
		}
		want(t, getTask(t, s, "bob", kept).Status, "failed")
	})
}

// A client that listens to a task gets its state, and then each change.
func TestTaskListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) { return server.Ask[string](ctx, "k", "?") }, must)
		mine := beginTask(t, s, as("ann", taskRequest(mcp.MethodCallTool, `{"name":"t"}`))).TaskID
		other := beginTask(t, s, as("bob", taskRequest(mcp.MethodCallTool, `{"name":"t"}`))).TaskID
		synctest.Wait()
		p := &peer{}
		req := as("ann", taskRequest(mcp.MethodListen, `{"notifications":{"taskIds":["`+mine+`","`+other+`","none"]}}`))
		req.Peer = p
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _, _ = s.ServeMCP(ctx, req) }()
		synctest.Wait()
		answer := as("ann", taskRequest("tasks/update", `{"taskId":"`+mine+`","inputResponses":{"k#1":`+accept(`{"value":"x"}`)+`}}`))
		want(t, serve(t, s, answer), "{}")
		synctest.Wait()
		cancel()
		<-done
		var got []string
		for _, c := range p.changes[1:] {
			var task mcpwire.Task
			if err := mcp.Decode(c.Params, &task); err != nil || c.Method != "notifications/tasks" || task.TaskID != mine {
				t.Errorf("%s %s: %v", c.Method, c.Params, err)
			}
			got = append(got, about(task))
		}
		want(t, string(p.changes[0].Params), `{"notifications":{"taskIds":["`+mine+`"]}}`)
		want(t, strings.Join(got, "\n"), "input_required k#1\nworking\n"+`completed{"content":[{"type":"text","text":"x"}],"resultType":"complete"}`)

		req = request(mcp.MethodListen, `{"notifications":{"taskIds":["`+mine+`"]}}`)
		var missing *mcp.CapabilityError
		if _, err := s.ServeMCP(t.Context(), req); !errors.As(err, &missing) {
			t.Errorf("without the extension: %v", err)
		}
		want(t, serve(t, s, taskRequest(mcp.MethodListen, `{"notifications":{"taskIds":7}}`)), "error -32602: notifications.taskIds must be an array of strings")
	})
}

func TestTaskMistakes(t *testing.T) {
	none := func(context.Context, struct{}) (string, error) { return "", nil }
	_, err := server.NewTool("t", "", none, server.ToolOptions{Task: server.TaskOptions{Mode: "always"}})
	wantPart(t, fmt.Sprint(err), `Task.Mode is "always": want "may", "must" or empty`)
	s := newServer(server.Options{Extensions: []mcp.Extension{{ID: "io.modelcontextprotocol/tasks"}}})
	item, err := server.NewTool("t", "", none, must)
	if err != nil {
		t.Fatal(err)
	}
	wantPart(t, fmt.Sprint(s.Add(item)), "defines tasks too")
}
