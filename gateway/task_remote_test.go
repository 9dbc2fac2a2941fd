package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// promotingReplica is a gateway with a server process of its own, as a replica of a cluster. It
// makes tasks of slow calls.
func promotingReplica(t *testing.T, url string) (*gateway.Gateway, *cluster.Cluster) {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{URL: url, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
	settle(t, h)
	return gatewayOf(t, h, gateway.Options{Keys: c.Keys(), Tasks: c.Tasks(), TaskAfter: 20 * time.Millisecond}), c
}

// A task that began at one replica is polled, answered, followed and cancelled at another, by
// clients of both eras. Its end is the same at all of them.
func TestHostedTasksThroughReplicas(t *testing.T) {
	t.Parallel()
	url := natstest.Start(t, nil).ClientURL()
	one, _ := promotingReplica(t, url)
	two, _ := promotingReplica(t, url)
	third, _ := promotingReplica(t, url)
	get := func(g *gateway.Gateway, id string) string {
		res, err := g.ServeMCP(t.Context(), taskRequest("", mcpwire.MethodGetTask, `{"taskId":"`+id+`"}`))
		if err != nil {
			return err.Error()
		}
		return string(res.Raw)
	}
	for _, revision := range erasOfTasks {
		asked := make(chan string, 10)
		o := client.Options{Wire: client.Wire{Revision: revision}, Answers: answerAda(asked)}
		first, other := dial(t, one, o), dial(t, two, o)
		release := func() {
			t.Helper()
			if _, err := client.Call[string](t.Context(), first, "up__release", nil); err != nil {
				t.Fatal(err)
			}
		}
		task := startTask(t, first, "up__ask")
		states := followTasks(t, two, task.ID())
		awaitState(t, states, "working half")
		release()
		awaitState(t, states, "input_required")
		res, err := other.Resume(task.ID()).Wait(t.Context())
		if err != nil || res.Content[0].Text != "Hello, Ada" || len(asked) == 0 {
			t.Errorf("%s: %+v, %v, asked %d times", revision, res, err, len(asked))
		}
		awaitState(t, states, "completed")
		if at1, at2, at3 := get(one, task.ID()), get(two, task.ID()), get(third, task.ID()); at1 != at2 || at1 != at3 || !strings.Contains(at1, "Hello, Ada") {
			t.Errorf("the end at the replicas: %s\n%s\n%s", at1, at2, at3)
		}

		hanging := startTask(t, first, "up__hang")
		if err := other.Resume(hanging.ID()).Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if got := get(third, hanging.ID()); !strings.Contains(got, `"cancelled"`) {
			t.Errorf("%s: after the cancellation: %s", revision, got)
		}
		if _, err := two.ServeMCP(t.Context(), taskRequest("bob", mcpwire.MethodGetTask, `{"taskId":"`+task.ID()+`"}`)); code(err, jsonrpc.CodeInvalidParams) != nil {
			t.Errorf("another principal's request: %v", err)
		}
	}
}

// The tasks of a replica that is gone fail with the cause when its lease has ended: for polls and
// for subscriptions. The replica itself, if it was only cut off, shows no other state.
func TestTasksOfGoneReplica(t *testing.T) {
	t.Parallel()
	url := natstest.Start(t, nil).ClientURL()
	one, gone := promotingReplica(t, url)
	two, _ := promotingReplica(t, url)
	task := startTask(t, dial(t, one, client.Options{}), "up__hang")
	states := followTasks(t, two, task.ID())
	awaitState(t, states, "working")
	began := time.Now()
	gone.Close() // as if the process had been killed, for the others
	awaitState(t, states, "failed the dowel that ran the call has ended")
	t.Logf("it took %v", time.Since(began))
	res, err := two.ServeMCP(t.Context(), taskRequest("", mcpwire.MethodGetTask, `{"taskId":"`+task.ID()+`"}`))
	if err != nil || !strings.Contains(string(res.Raw), `"failed"`) {
		t.Errorf("another replica: %+v, %v", res, err)
	}
	if _, err := one.ServeMCP(t.Context(), taskRequest("", mcpwire.MethodGetTask, `{"taskId":"`+task.ID()+`"}`)); code(err, jsonrpc.CodeInternal) != nil {
		t.Errorf("the replica that is cut off: %v", err)
	}
}

// While the cluster cannot be reached, requests about tasks and calls that must become tasks fail
// at once. Other calls are made.
func TestTasksWithoutCluster(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	g, c := promotingReplica(t, nats.ClientURL())
	task := startTask(t, dial(t, g, client.Options{}), "up__hang")
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !c.State().Connected })
	began := time.Now()
	for _, id := range []string{task.ID(), strings.Repeat("A", 26)} {
		_, err := g.ServeMCP(t.Context(), taskRequest("", mcpwire.MethodGetTask, `{"taskId":"`+id+`"}`))
		if code(err, jsonrpc.CodeInternal) != nil {
			t.Errorf("the task %s: %v", id, err)
		}
	}
	must := taskRequest("", mcp.MethodCallTool, `{"name":"up__own_task","arguments":{},"task":{}}`)
	must.Revision = mcp.Revision20251125
	if _, err := g.ServeMCP(t.Context(), must); code(err, jsonrpc.CodeInternal) != nil || !strings.Contains(err.Error(), "the cluster cannot be reached") {
		t.Errorf("a call that must become a task: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the errors took %v", took)
	}
	res, err := g.ServeMCP(t.Context(), taskRequest("", mcp.MethodCallTool, `{"name":"up__pid","arguments":{}}`))
	if err != nil || res.Type == mcpwire.ResultTask {
		t.Errorf("a call: %+v, %v", res, err)
	}
}
