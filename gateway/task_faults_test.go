package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// A task with a question that was answered slowly holds up no other caller of a shared upstream.
func TestAnsweredTaskDelaysNoOthers(t *testing.T) {
	t.Parallel()
	s := taskServer(t)
	server.Tool(s, "plain", "", func(context.Context, struct{}) (string, error) { return "ok", nil })
	g, _ := over(t, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125, SerializeAsks: true}}})
	c := dial(t, g, client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		time.Sleep(200 * time.Millisecond) // longer than a call keeps its turn after a question
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"Name":"Ada"}`)}, nil
	}}})
	if _, err := client.Call[string](t.Context(), c, "up__ask", nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := g.ServeMCP(ctx, request("bob", `{"name":"up__plain","arguments":{}}`)); err != nil {
		t.Errorf("another caller got no turn: %v", err)
	}
}

// A question of a task is never shown to another user, also if only that user's call runs when it
// arrives.
func TestQuestionOfATaskReachesNoOther(t *testing.T) {
	t.Parallel()
	up := &askingTaskServer{answers: make(chan string, 1), called: make(chan struct{}, 1)}
	g, _ := over(t, hub.Definition{Name: "up", Target: up, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}}})
	ada := request("ada", `{"name":"up__task","arguments":{}}`)
	ada.ClientCapabilities = json.RawMessage(`{"elicitation":{"form":{}},"extensions":{"` + mcpwire.ExtensionTasks + `":{}}}`)
	if _, err := g.ServeMCP(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		bob := request("bob", `{"name":"up__slow","arguments":{}}`)
		bob.ClientCapabilities = json.RawMessage(`{"elicitation":{"form":{}}}`)
		res, err := g.ServeMCP(ctx, bob)
		raw, _ := json.Marshal(res)
		ended <- fmt.Sprint(string(raw), err)
	}()
	<-up.called
	up.send(`{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"SECRET of ada","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"}}}}`)
	if answer := <-up.answers; !strings.Contains(answer, `"error"`) {
		t.Errorf("the question was answered: %s", answer)
	}
	cancel()
	if got := <-ended; strings.Contains(got, "SECRET") {
		t.Errorf("bob got the question: %s", got)
	}
}

// askingTaskServer is a server of 2025-11-25 on a shared channel, with a tool that makes a task and
// one that does not answer.
type askingTaskServer struct {
	answers chan string   // to its questions
	called  chan struct{} // the slow tool was called
	mu      sync.Mutex
	conn    net.Conn
}

func (s *askingTaskServer) Endpoint() string { return "" }
func (s *askingTaskServer) String() string   { return "a server with a task" }

func (s *askingTaskServer) send(frame string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.conn, frame)
}

// Dial implements [transport.Target].
func (s *askingTaskServer) Dial(ctx context.Context, in mcp.Inbound, o transport.ClientOptions) (mcp.Transport, error) {
	near, far := net.Pipe()
	s.conn = far
	go func() {
		for lines := bufio.NewScanner(far); lines.Scan(); {
			s.receive(lines.Text())
		}
	}()
	return overconn.Connect(ctx, stdio.Conn(near, 0), in, "", o)
}

func (s *askingTaskServer) receive(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
		return
	}
	const task = `"taskId":"T1","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null,"pollInterval":1000`
	result := ""
	switch {
	case m.Method == "":
		s.answers <- line
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}`
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"slow","inputSchema":{"type":"object"}}]}`
	case m.Params.Name == "task":
		result = `{"task":{` + task + `}}`
	case m.Params.Name == "slow":
		s.called <- struct{}{}
	default:
		result = `{` + task + `}`
	}
	if result != "" {
		s.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
	}
}

// scriptedUpstream is a server of 2026-07-28 with tasks. A test gives its answers to tools/call
// and tasks/get.
type scriptedUpstream struct {
	call             func() *mcp.Result
	get              func(poll int32) string
	calls, polls     atomic.Int32
	updates, cancels atomic.Int32
}

func (*scriptedUpstream) Extensions() []mcp.Extension {
	return []mcp.Extension{mcpwire.TasksExtension()}
}

func (s *scriptedUpstream) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.Result{Raw: json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"` + mcpwire.ExtensionTasks + `":{}}}}`)}, nil
	case mcp.MethodListTools:
		return &mcp.Result{Raw: json.RawMessage(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)}, nil
	case mcp.MethodCallTool:
		s.calls.Add(1)
		return s.call(), nil
	case mcpwire.MethodGetTask:
		return &mcp.Result{Raw: json.RawMessage(s.get(s.polls.Add(1)))}, nil
	case mcpwire.MethodUpdateTask:
		s.updates.Add(1)
		return &mcp.Result{}, nil
	case mcpwire.MethodCancelTask:
		s.cancels.Add(1)
		return &mcp.Result{}, nil
	}
	return nil, mcp.MethodNotFound(req.Method)
}

// taskState returns a task with a status and further members.
func taskState(status, more string) string {
	return `{"taskId":"x","status":"` + status + `","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":20` + more + `}`
}

const oneQuestion = `,"inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}`

func createdTask() *mcp.Result {
	return &mcp.Result{Type: mcpwire.ResultTask, Raw: json.RawMessage(taskState("working", ""))}
}

// The gateway waits longer and longer for an upstream that wants a call again without a question.
func TestCallIsRepeatedWithPauses(t *testing.T) {
	t.Parallel()
	up := &scriptedUpstream{call: func() *mcp.Result {
		return &mcp.Result{Type: mcp.ResultInputRequired, Raw: json.RawMessage(`{"inputRequests":{},"requestState":"s"}`)}
	}}
	g, _ := over(t, hub.Definition{Name: "up", Target: up})
	c := dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := c.CallTool(ctx, mcp.CallToolParams{Name: "up__t"}); err == nil {
		t.Error("the call has a result")
	}
	if n := up.calls.Load(); n > 10 {
		t.Errorf("%d calls in a second", n)
	}
}

// A question that an upstream still shows after its answer is not asked again.
func TestQuestionsOfTasksAreAskedOnce(t *testing.T) {
	t.Parallel()
	up := &scriptedUpstream{call: createdTask, get: func(poll int32) string {
		if poll <= 4 {
			return taskState("input_required", oneQuestion)
		}
		return taskState("completed", `,"result":{"content":[]}`)
	}}
	g, _ := over(t, hub.Definition{Name: "up", Target: up})
	var asked atomic.Int32
	c := dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}, Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Add(1)
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{}`)}, nil
	}}})
	if _, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "up__t"}); err != nil {
		t.Error(err)
	}
	if asked.Load() != 1 || up.updates.Load() != 1 {
		t.Errorf("asked %d times, answered %d times", asked.Load(), up.updates.Load())
	}
}

// If the client cannot be asked, the upstream's task is cancelled.
func TestTaskOfASilentClientIsCancelled(t *testing.T) {
	t.Parallel()
	up := &scriptedUpstream{call: createdTask, get: func(int32) string { return taskState("input_required", oneQuestion) }}
	g, _ := over(t, hub.Definition{Name: "up", Target: up})
	c := dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}})
	if res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "up__t"}); err == nil && !res.IsError {
		t.Errorf("the call succeeded: %v", res)
	}
	polltest.Until(t, "the task is cancelled", func() bool { return up.cancels.Load() == 1 })
}

// A tool without tasks does not run for a client of 2025-11-25 that asks for a task.
func TestTaskOfToolWithoutTasks(t *testing.T) {
	t.Parallel()
	s := taskServer(t)
	var runs atomic.Int32
	server.Tool(s, "plain", "", func(context.Context, struct{}) (string, error) { runs.Add(1); return "ok", nil })
	for _, revision := range []mcp.Revision{mcp.Revision20251125, mcp.Revision20250618} {
		g, _ := over(t, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: revision}}})
		near, far := net.Pipe()
		go func() { _ = stdio.ServeStream(t.Context(), far, g) }()
		in := bufio.NewScanner(near)
		say := func(frame string) string {
			fmt.Fprintln(near, frame)
			in.Scan()
			return in.Text()
		}
		say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		fmt.Fprintln(near, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		answer := say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"up__plain","arguments":{},"task":{}}}`)
		near.Close()
		if !strings.Contains(answer, `"code":-32601`) || runs.Load() != 0 {
			t.Errorf("%s: %d runs, %s", revision, runs.Load(), answer)
		}
	}
}
