package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// taskServer returns a server whose tools make a task of each call. hang runs until it is
// cancelled.
func taskServer(t *testing.T) *server.Server {
	s := server.New("up", "1", nil)
	t.Cleanup(func() { s.Close() })
	must := server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}}
	server.Tool(s, "declared", "", func(ctx context.Context, _ struct{}) (string, error) {
		return string(server.RequestFrom(ctx).ClientCapabilities), nil
	}, must)
	server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := server.Ask[struct{ Name string }](ctx, "who", "Who are you?")
		return "Hello, " + answer.Name, err
	}, must)
	server.Tool(s, "hang", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, must)
	return s
}

func startTask(t *testing.T, c *client.Client, tool string) *client.Task {
	t.Helper()
	task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: tool})
	if err != nil || task == nil {
		t.Fatalf("%s: %v, %v", tool, task, err)
	}
	return task
}

// A client of the gateway uses the tasks of an upstream as if they were the gateway's.
func TestTasksOfUpstreams(t *testing.T) {
	t.Parallel()
	up := taskServer(t)
	g, _ := over(t, hub.Definition{Name: "up", Target: up})
	asked := make(chan string, 10)
	c := dial(t, g, client.Options{Answers: client.Answers{Elicit: func(_ context.Context, p *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- p.Message
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"Name":"Ada"}`)}, nil
	}}})
	if _, declared := c.Server().Capabilities.Extensions[mcpwire.ExtensionTasks]; !declared {
		t.Error("the gateway does not declare tasks")
	}
	got, err := client.Call[string](t.Context(), c, "up__ask", nil)
	if err != nil || got != "Hello, Ada" {
		t.Errorf("%q, %v", got, err)
	}
	if question := <-asked; !strings.HasPrefix(question, "The server up asks: ") {
		t.Errorf("the question does not name its server: %q", question)
	}

	task := startTask(t, c, "up__hang")
	if strings.Contains(task.ID(), "hang") {
		t.Errorf("the id shows the upstream: %s", task.ID())
	}
	if state, err := c.Resume(task.ID()).State(t.Context()); err != nil || state.Status != "working" {
		t.Errorf("%+v, %v", state, err)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	if state, err := task.State(t.Context()); err != nil || state.Status != "cancelled" {
		t.Errorf("%+v, %v", state, err)
	}
}

// A client without the extension gets the result of the task, for which the gateway waits, and
// nothing else of tasks.
func TestTasksMustBeDeclared(t *testing.T) {
	t.Parallel()
	g, _ := over(t, hub.Definition{Name: "up", Target: taskServer(t)})
	req := request("", `{"name":"up__declared","arguments":{}}`)
	if res, err := g.ServeMCP(t.Context(), req); err != nil || res.Type != "" || !strings.Contains(string(res.Raw), "tasks") {
		t.Errorf("a call: %+v, %v", res, err)
	}
	var missing *mcp.CapabilityError
	for _, method := range []string{mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask} {
		if _, err := g.ServeMCP(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(`{"taskId":"x"}`)}); !errors.As(err, &missing) {
			t.Errorf("%s: %v", method, err)
		}
	}
	older := dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20250618}})
	if _, declared := older.Server().Capabilities.Extensions[mcpwire.ExtensionTasks]; declared {
		t.Error("the extension is declared to a client of 2025-06-18")
	}
}

// taskRequest returns a request of a principal that has declared the extension.
func taskRequest(principal, method, params string) *mcp.Request {
	return &mcp.Request{
		Method: method, Params: json.RawMessage(params), Principal: mcp.Principal{ID: principal}, Revision: mcp.LatestRevision,
		ClientCapabilities: json.RawMessage(`{"extensions":{"` + mcpwire.ExtensionTasks + `":{}}}`),
	}
}

// The id of a task works for its principal only, at a gateway with the same keys that shows its
// upstream.
func TestTasksOfOthers(t *testing.T) {
	t.Parallel()
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: taskServer(t)}, hub.Definition{Name: "other", Target: taskServer(t)})
	settle(t, h)
	keys := new(mcp.Keys)
	g := gatewayOf(t, h, gateway.Options{Keys: keys})
	res, err := g.ServeMCP(t.Context(), taskRequest("ada", mcp.MethodCallTool, `{"name":"up__hang","arguments":{}}`))
	if err != nil || res.Type != mcpwire.ResultTask {
		t.Fatalf("%+v, %v", res, err)
	}
	var created struct {
		TaskID string `json:"taskId"`
	}
	if err := json.Unmarshal(res.Raw, &created); err != nil {
		t.Fatal(err)
	}
	get := func(g *gateway.Gateway, principal, id string) error {
		_, err := g.ServeMCP(t.Context(), taskRequest(principal, mcpwire.MethodGetTask, `{"taskId":"`+id+`"}`))
		return err
	}
	for name, err := range map[string]error{
		"another principal":        get(g, "eve", created.TaskID),
		"no principal":             get(g, "", created.TaskID),
		"a cut id":                 get(g, "ada", created.TaskID[:len(created.TaskID)-2]),
		"an unknown id":            get(g, "ada", "task-1"),
		"other keys":               get(gatewayOf(t, h, gateway.Options{}), "ada", created.TaskID),
		"a view without upstreams": get(g.Only("other"), "ada", created.TaskID),
	} {
		if err := code(err, jsonrpc.CodeInvalidParams); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"its principal": get(g, "ada", created.TaskID),
		"a replica":     get(gatewayOf(t, h, gateway.Options{Keys: keys}), "ada", created.TaskID),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A subscription of the client follows tasks of several upstreams, and ignores unknown ids.
func TestTasksAreFollowed(t *testing.T) {
	t.Parallel()
	g, _ := over(t, hub.Definition{Name: "up", Target: taskServer(t)}, hub.Definition{Name: "other", Target: taskServer(t)})
	c := dial(t, g, client.Options{})
	one, two := startTask(t, c, "up__hang"), startTask(t, c, "other__hang")
	ids, _ := json.Marshal([]string{one.ID(), "unknown", two.ID()})
	listen := taskRequest("", mcp.MethodListen, `{"notifications":{"`+mcpwire.ListenTasks+`":`+string(ids)+`}}`)
	peer := recordingPeer{make(chan mcp.Notification, 100)}
	listen.Peer = peer
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan error, 1)
	go func() {
		_, err := g.ServeMCP(ctx, listen)
		listening <- err
	}()
	defer func() { cancel(); <-listening }()
	nextChange := func() mcp.Notification {
		select {
		case n := <-peer.changes:
			return n
		case err := <-listening:
			listening <- err
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatal("no change was received")
		}
		panic("unreachable")
	}
	accepted := rawjson.Lookup(rawjson.Lookup(nextChange().Params, "notifications"), mcpwire.ListenTasks)
	if want, _ := json.Marshal([]string{one.ID(), two.ID()}); string(accepted) != string(want) {
		t.Errorf("accepted are %s, want %s", accepted, want)
	}
	for _, task := range []*client.Task{one, two} {
		if err := task.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for open := []string{one.ID(), two.ID()}; len(open) > 0; {
		n := nextChange()
		var task struct{ TaskID, Status string }
		if err := json.Unmarshal(n.Params, &task); err != nil || n.Method != mcpwire.NotificationTask {
			t.Fatalf("%s %s: %v", n.Method, n.Params, err)
		}
		if task.TaskID != one.ID() && task.TaskID != two.ID() {
			t.Fatalf("a change of another task: %s", n.Params)
		}
		if task.Status == "cancelled" {
			open = slices.DeleteFunc(open, func(id string) bool { return id == task.TaskID })
		}
	}
}

// The id of a task outlives a relay: it is the id of the gateway behind it.
func TestTasksThroughRelays(t *testing.T) {
	t.Parallel()
	behind, _ := over(t, hub.Definition{Name: "up", Target: taskServer(t)})
	relay := func() *client.Client {
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "dowel", Target: behind})
		settle(t, h)
		return dial(t, gatewayOf(t, h, gateway.Options{}).Relay("dowel"), client.Options{})
	}
	id := startTask(t, relay(), "up__hang").ID()
	task := relay().Resume(id)
	if state, err := task.State(t.Context()); err != nil || state.Status != "working" {
		t.Errorf("%+v, %v", state, err)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	if state, err := relay().Resume(id).State(t.Context()); err != nil || state.Status != "cancelled" {
		t.Errorf("%+v, %v", state, err)
	}
}
