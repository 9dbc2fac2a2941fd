package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// followTasks returns the states of tasks as a subscription shows them: "id status message".
func followTasks(t *testing.T, g *gateway.Gateway, ids ...string) <-chan string {
	t.Helper()
	raw, _ := json.Marshal(ids)
	listen := taskRequest("", mcp.MethodListen, `{"notifications":{"`+mcpwire.ListenTasks+`":`+string(raw)+`}}`)
	peer := recordingPeer{make(chan mcp.Notification, 100)}
	listen.Peer = peer
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = g.ServeMCP(ctx, listen) }()
	states := make(chan string, 100)
	go func() {
		defer close(states)
		for {
			select {
			case n := <-peer.changes:
				var task struct{ TaskID, Status, StatusMessage string }
				if json.Unmarshal(n.Params, &task) == nil && n.Method == mcpwire.NotificationTask {
					states <- fmt.Sprintf("%s %s %s", task.TaskID, task.Status, task.StatusMessage)
				}
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return states
}

// awaitState waits until a subscription has shown a state that contains a text.
func awaitState(t *testing.T, states <-chan string, want string) {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case got := <-states:
			if strings.Contains(got, want) {
				return
			}
		case <-limit:
			t.Fatalf("no state %q", want)
		}
	}
}

// A task fails with the reason when its tool is hidden or its server is removed: for polls and for
// subscriptions, also if the gateway hosts the task. It stays failed when the tool is back, and a
// task that has ended before keeps its end.
func TestTasksOfWithdrawnTools(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks { // the gateway hosts the tasks of the older one
		t.Run(string(upstream), func(t *testing.T) {
			t.Parallel()
			s := taskServer(t)
			server.Tool(s, "hang_too", "", func(ctx context.Context, _ nothing) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 1}})
			definition := hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: upstream}}}
			g, h := over(t, definition)
			asked := make(chan string, 10)
			c := dial(t, g, client.Options{Answers: answerAda(asked)})
			done := startTask(t, c, "up__ask")
			if _, err := done.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			hidden, removed := startTask(t, c, "up__hang"), startTask(t, c, "up__hang_too")
			states := followTasks(t, g, hidden.ID(), removed.ID())
			awaitState(t, states, hidden.ID()+" working")

			withoutHang := definition
			withoutHang.Tools.Hide = []string{"hang"}
			h.Apply([]hub.Definition{withoutHang}, "the test hides a tool")
			awaitState(t, states, hidden.ID()+" failed the tool hang of the server up is not offered any more")
			state := stateOf(t, hidden)
			if state.Status != "failed" || !strings.Contains(state.Err.Error(), "not offered any more") {
				t.Errorf("%+v", state)
			}
			h.Apply([]hub.Definition{definition}, "the test shows it again")
			polltest.Until(t, "the tool is back", func() bool { return strings.Contains(fmt.Sprint(tools(t, c)), "up__hang") })
			if again := stateOf(t, hidden); again.Status != "failed" || !again.Updated.Equal(state.Updated) {
				t.Errorf("%+v, before %+v", again, state)
			}
			if err := hidden.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			if s := stateOf(t, removed); s.Status != "working" {
				t.Errorf("the other task: %+v", s)
			}
			h.Apply(nil, "the test removes the server")
			awaitState(t, states, removed.ID()+" failed the server up")
			if s := stateOf(t, removed); s.Status != "failed" {
				t.Errorf("%+v", s)
			}
			if s, err := done.State(t.Context()); upstream != mcp.LatestRevision && (err != nil || s.Status != "completed") {
				t.Errorf("the task that has ended: %+v, %v", s, err)
			}
		})
	}
}

// A new subscription to a task of a tool that was withdrawn before shows that the task has failed.
// It does not show the state at the upstream. A task that has ended before keeps its end.
func TestNewSubscriptionToWithdrawnTask(t *testing.T) {
	t.Parallel()
	definition := hub.Definition{Name: "up", Target: taskServer(t)}
	g, h := over(t, definition)
	c := dial(t, g, client.Options{Answers: answerAda(make(chan string, 10))})
	done, task := startTask(t, c, "up__ask"), startTask(t, c, "up__hang")
	if _, err := done.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	definition.Tools.Hide = []string{"hang", "ask"}
	h.Apply([]hub.Definition{definition}, "the test hides the tools")
	polltest.Until(t, "the tools are hidden", func() bool { return !strings.Contains(fmt.Sprint(tools(t, c)), "up__hang") })
	states := followTasks(t, g, task.ID())
	limit := time.After(time.Minute)
	for range 2 {
		select {
		case got := <-states:
			if !strings.HasPrefix(got, task.ID()+" failed the tool hang") {
				t.Errorf("state %s", got)
			}
		case <-limit:
			t.Fatal("no state")
		}
		states = followTasks(t, g, task.ID()) // again, after the task was cancelled at the upstream
	}
	awaitState(t, followTasks(t, g, done.ID()), "completed")
}

// A call becomes a task that fails at once if its tool was withdrawn meanwhile, also if the gateway
// has other tasks.
func TestToolWithdrawnBeforeItsCallIsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New("up", "1", &server.Options{Logger: quiet})
		defer s.Close()
		hang := func(ctx context.Context, _ nothing) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		server.Tool(s, "hang", "", hang)
		server.Tool(s, "other", "", hang)
		definition := hub.Definition{Name: "up", Target: s}
		h := hubOf(t, hub.Options{}, definition)
		settle(t, h)
		g := gatewayOf(t, h, gateway.Options{TaskAfter: time.Second})
		c := dial(t, g, client.Options{})
		other := startTask(t, c, "up__other")
		time.AfterFunc(time.Second/2, func() {
			definition.Tools.Hide = []string{"hang"}
			h.Apply([]hub.Definition{definition}, "the test hides a tool")
		})
		task := startTask(t, c, "up__hang")
		time.Sleep(time.Second)
		if state := stateOf(t, task); state.Status != "failed" || !strings.Contains(state.Message, "the tool hang of the server up is not offered any more") {
			t.Errorf("%+v", state)
		}
		if state := stateOf(t, other); state.Status != "working" {
			t.Errorf("%+v", state)
		}
	})
}

// The audit has the creation of a task, the retrieval of its end, answers and cancellations.
func TestAuditOfTasks(t *testing.T) {
	t.Parallel()
	g, _ := over(t, hub.Definition{Name: "up", Target: taskServer(t)})
	checkAuditOfTasks(t, g, "up__", "up")
}

// The audit of a server without a gateway names the tools of tasks too.
func TestAuditOfServersTasks(t *testing.T) {
	t.Parallel()
	checkAuditOfTasks(t, taskServer(t), "", "")
}

// checkAuditOfTasks checks the audit of a handler that has the tools of taskServer, with a prefix,
// from an upstream.
func checkAuditOfTasks(t *testing.T, handler mcp.Handler, prefix, upstream string) {
	t.Helper()
	var log bytes.Buffer
	audited := mcp.Chain(handler, gateway.Audit(&log, gateway.AuditOptions{}))
	c := dial(t, audited, client.Options{Info: mcp.Implementation{Name: "auditor", Version: "1"}, Answers: answerAda(make(chan string, 10))})
	if _, err := client.Call[string](t.Context(), c, prefix+"ask", nil); err != nil {
		t.Fatal(err)
	}
	task := startTask(t, c, prefix+"hang")
	for range 3 {
		stateOf(t, task)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	stateOf(t, task)
	_, _ = c.Resume("unknown").State(t.Context())
	var got []string
	for line := range strings.Lines(log.String()) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Client != "auditor" || r.Sent == 0 {
			t.Fatalf("%v: %s", err, line)
		}
		got = append(got, strings.Join([]string{r.Method, r.Server, r.Name, r.Outcome}, "|"))
	}
	want := []string{
		"tools/call|UP|ask|task", "tasks/update|UP|ask|ok", "tasks/get|UP|ask|ok",
		"tools/call|UP|hang|task", "tasks/cancel|UP|hang|ok", "tasks/get|UP|hang|cancelled", "tasks/get|||error",
	}
	if wanted := strings.ReplaceAll(strings.Join(want, "\n"), "UP", upstream); strings.Join(got, "\n") != wanted {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), wanted)
	}
}
