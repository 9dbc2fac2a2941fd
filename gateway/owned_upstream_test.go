package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	natsserver "github.com/nats-io/nats-server/v2/server"
)

// sharingReplicas are the gateways of replicas with the server up, which runs once for all. The
// first one is its owner.
type sharingReplicas struct {
	t        *testing.T
	nats     *natsserver.Server
	server   *server.Server
	upstream mcp.Revision
	quota    *transport.Quota // nil means the shared one
	gateways []*gateway.Gateway
}

func newSharingReplicas(t *testing.T, s *server.Server, upstream mcp.Revision, taskAfter ...time.Duration) *sharingReplicas {
	t.Helper()
	r := &sharingReplicas{t: t, nats: natstest.Start(t, nil), server: s, upstream: upstream}
	for _, after := range taskAfter {
		r.add(after)
	}
	return r
}

func (r *sharingReplicas) add(taskAfter time.Duration) {
	t := r.t
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{URL: r.nats.ClientURL(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var g atomic.Pointer[gateway.Gateway]
	pool, err := sharedserver.Join(sharedserver.Options{Network: c, Values: c.Values(), Logger: quiet,
		Serve: func(name string) (mcp.Handler, error) {
			if g.Load() == nil {
				return nil, sharedserver.ErrStarting
			}
			return hublink.ServeUpstream(g.Load(), name).(mcp.Handler), nil
		},
		Redial: func(string) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	target := pool.Target("up", memory.Dialer(r.server, transport.ServerOptions{Logger: quiet}))
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: target, Options: client.Options{Wire: client.Wire{Revision: r.upstream}}})
	settle(t, h)
	g.Store(gatewayOf(t, h, gateway.Options{Keys: c.Keys(), Tasks: c.Tasks(), TaskAfter: taskAfter, Quota: r.quota}))
	r.gateways = append(r.gateways, g.Load())
}

// asksAt sends a request that must be answered by questions, and returns their keys and the state.
func (r *sharingReplicas) asksAt(replica int, req *mcp.Request) (keys []string, state string) {
	r.t.Helper()
	res, err := r.gateways[replica].ServeMCP(r.t.Context(), req)
	if err != nil || res.Type != mcp.ResultInputRequired {
		r.t.Fatalf("at replica %d: %+v, %v", replica, res, err)
	}
	raw := res.Raw
	if raw == nil {
		raw, _ = json.Marshal(res.Value)
	}
	var asked struct {
		InputRequests map[string]struct{ Params struct{ Message string } }
		RequestState  string
	}
	if err := json.Unmarshal(raw, &asked); err != nil {
		r.t.Fatal(err)
	}
	for key, q := range asked.InputRequests {
		if keys = append(keys, key); !strings.Contains(q.Params.Message, "The server up asks") {
			r.t.Errorf("at replica %d: the question %q", replica, q.Params.Message)
		}
	}
	slices.Sort(keys)
	return keys, asked.RequestState
}

// A call that asks is continued at any replica, wherever it began, by clients with and without a
// principal. Other clients cannot continue it.
func TestQuestionsOfSharedServer(t *testing.T) {
	t.Parallel()
	for _, upstream := range erasOfTasks {
		r := newSharingReplicas(t, asker(), upstream, 0, 0, 0)
		for _, who := range []string{"", "ada"} {
			for _, way := range [][3]int{{1, 0, 0}, {0, 1, 1}, {1, 2, 0}, {1, 0, 2}, {0, 1, 0}, {1, 1, 1}, {2, 0, 1}} {
				what := fmt.Sprintf("%s, client %q, at the replicas %v", upstream, who, way)
				req := request(who, fmt.Sprintf(`{"name":"up__ask","arguments":{"times":2,"tag":%q}}`, what+": "))
				keys, state := r.asksAt(way[0], req)
				keys, state = r.asksAt(way[1], answered(req, state, keys...))
				if who != "" {
					foreign := request("eve", string(req.Params))
					if _, err := r.gateways[way[2]].ServeMCP(t.Context(), answered(foreign, state, keys...)); code(err, jsonrpc.CodeInvalidParams) != nil {
						t.Errorf("%s: another client's retry: %v", what, err)
					}
				}
				res, err := r.gateways[way[2]].ServeMCP(t.Context(), answered(req, state, keys...))
				if got := text(t, res, err); got != what+": Ada.Ada." {
					t.Errorf("%s: %s", what, got)
				}
			}
		}
	}
}

// The same holds for prompts.
func TestPromptsOfSharedServer(t *testing.T) {
	t.Parallel()
	r := newSharingReplicas(t, asker(), mcp.Revision20251125, 0, 0)
	for _, way := range [][2]int{{1, 0}, {0, 1}, {1, 1}} {
		req := request("ada", `{"name":"up__ask"}`)
		req.Method = mcp.MethodGetPrompt
		keys, state := r.asksAt(way[0], req)
		res, err := r.gateways[way[1]].ServeMCP(t.Context(), answered(req, state, keys...))
		if err != nil || !strings.Contains(string(res.Raw), `"Ada"`) {
			t.Errorf("at the replicas %v: %+v, %v", way, res, err)
		}
	}
}

// A task that began at one replica is polled, answered, followed and cancelled at any other one.
// The owner hosts the tasks of slow calls and of an upstream of 2025-11-25.
func TestTasksOfSharedServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what     string
		server   *server.Server
		upstream mcp.Revision
		after    []time.Duration
	}{
		{"tasks of the server", taskServer(t), mcp.LatestRevision, []time.Duration{0, 0, 0}},
		{"tasks of the server of 2025-11-25", taskServer(t), mcp.Revision20251125, []time.Duration{0, 0, 0}},
		{"tasks of the owner", newSlowUpstream(), mcp.LatestRevision, []time.Duration{20 * time.Millisecond, time.Hour, time.Hour}},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			r := newSharingReplicas(t, test.server, test.upstream, test.after...)
			for _, way := range [][2]int{{1, 0}, {1, 2}, {1, 1}, {0, 1}} {
				asked := make(chan string, 10)
				o := client.Options{Answers: answerAda(asked)}
				first, other := dial(t, r.gateways[way[0]], o), dial(t, r.gateways[way[1]], o)
				task := startTask(t, first, "up__ask")
				states := followTasks(t, r.gateways[way[1]], task.ID())
				if test.what == "tasks of the owner" {
					if _, err := client.Call[string](t.Context(), first, "up__release", nil); err != nil {
						t.Error(err)
					}
				}
				awaitState(t, states, task.ID()+" input_required")
				res, err := other.Resume(task.ID()).Wait(t.Context())
				if err != nil || res.Content[0].Text != "Hello, Ada" {
					t.Errorf("at %v: %+v, %v", way, res, err)
				}
				awaitState(t, states, task.ID()+" completed")

				res2, err := r.gateways[way[0]].ServeMCP(t.Context(), taskRequest("ada", mcp.MethodCallTool, `{"name":"up__hang","arguments":{}}`))
				if err != nil || res2.Type != mcpwire.ResultTask {
					t.Fatalf("at %v: %+v, %v", way, res2, err)
				}
				var created struct{ TaskID string }
				if err := json.Unmarshal(res2.Raw, &created); err != nil {
					t.Fatal(err)
				}
				about := `{"taskId":"` + created.TaskID + `"}`
				if _, err := r.gateways[way[1]].ServeMCP(t.Context(), taskRequest("eve", mcpwire.MethodGetTask, about)); code(err, jsonrpc.CodeInvalidParams) != nil {
					t.Errorf("at %v: another client's request: %v", way, err)
				}
				if _, err := r.gateways[way[1]].ServeMCP(t.Context(), taskRequest("ada", mcpwire.MethodCancelTask, about)); err != nil {
					t.Errorf("at %v: %v", way, err)
				}
				for i, g := range r.gateways {
					until(t, fmt.Sprintf("the task is cancelled at replica %d", i), func() bool {
						res, err := g.ServeMCP(t.Context(), taskRequest("ada", mcpwire.MethodGetTask, about))
						return err == nil && strings.Contains(string(res.Raw), `"cancelled"`) && strings.Contains(string(res.Raw), created.TaskID)
					})
				}
			}
		})
	}
}

// The owner applies its limits to the principals of other replicas: a call of a known client makes
// no room for one of another client.
func TestLimitsOfSharedServer(t *testing.T) {
	t.Parallel()
	r := newSharingReplicas(t, asker(), mcp.Revision20251125)
	r.quota = transport.NewQuota(transport.Limits{Questions: 1})
	r.add(0)
	r.add(0)
	bob := request("bob", `{"name":"up__ask","arguments":{}}`)
	keys, state := r.asksAt(1, bob)
	_, err := r.gateways[1].ServeMCP(t.Context(), request("ada", `{"name":"up__ask","arguments":{}}`))
	if code(err, jsonrpc.CodeInternal) != nil || !strings.Contains(err.Error(), "which is the limit of this server (questions)") {
		t.Errorf("a call above the limit of all clients: %v", err)
	}
	res, err := r.gateways[1].ServeMCP(t.Context(), answered(bob, state, keys...))
	if got := text(t, res, err); got != "Ada." {
		t.Errorf("the other client's call: %s", got)
	}
}
