package cluster_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// startCable passes connections on to an address until cut is called.
func startCable(t *testing.T, to string) (url string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	var copies sync.WaitGroup
	copies.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			mu.Lock()
			open = append(open, near, far)
			mu.Unlock()
			copies.Go(func() { _, _ = io.Copy(near, far); near.Close() })
			copies.Go(func() { _, _ = io.Copy(far, near); far.Close() })
		}
	})
	cut = func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	}
	t.Cleanup(func() { cut(); copies.Wait() })
	return "nats://" + l.Addr().String(), cut
}

// taskStates is the peer of a subscription. It keeps the states of tasks.
type taskStates struct {
	mu  sync.Mutex
	all map[string]string // by the id of the task
}

func (s *taskStates) Notify(context.Context, mcp.Notification) error { return nil }

func (s *taskStates) Change(_ context.Context, n mcp.Notification) error {
	var task struct{ TaskID, Status, StatusMessage string }
	if n.Method != "notifications/tasks" {
		return nil
	}
	if err := json.Unmarshal(n.Params, &task); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[task.TaskID] = task.Status + " " + task.StatusMessage
	return nil
}

func (s *taskStates) of(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// A client that only listens at one replica hears what becomes of the tasks of another one that is
// lost, within the lease and 5 s.
func TestListenerHearsOfLostReplica(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	cable, cut := startCable(t, nats.Addr().String())
	begun, ended, release := make(chan *replicaServer, 10), make(chan error, 10), make(chan struct{})
	close(release)
	var held []chan struct{}
	var all []*replicaServer
	for _, url := range []string{cable, nats.ClientURL()} {
		c, err := cluster.Open(t.Context(), url, &cluster.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		r := &replicaServer{cluster: c, server: server.New("library", "1", &server.Options{Keys: c.Keys(), Logger: quiet})}
		hold := release
		if held == nil { // the tools of the first replica work until its end
			hold = make(chan struct{})
		}
		held = append(held, hold)
		working(begun, ended, hold)(r)
		t.Cleanup(func() { _ = r.server.Close(); _ = c.Close() })
		all = append(all, r)
	}
	request := func(method, params string) *mcp.Request {
		return &mcp.Request{Method: method, Params: json.RawMessage(params), Revision: mcp.LatestRevision, Principal: mcp.Principal{ID: "ann"},
			ClientCapabilities: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)}
	}
	var ids []string
	for _, tool := range []string{"hold", "once"} {
		res, err := all[0].server.ServeMCP(t.Context(), request(mcp.MethodCallTool, `{"name":"`+tool+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(res.Value)
		var task struct{ TaskID string }
		if err != nil || json.Unmarshal(raw, &task) != nil || task.TaskID == "" {
			t.Fatalf("no task: %s, %v", raw, err)
		}
		ids = append(ids, task.TaskID)
		<-begun
	}
	states := &taskStates{all: map[string]string{}}
	listening := request(mcp.MethodListen, `{"notifications":{"taskIds":["`+strings.Join(ids, `","`)+`"]}}`)
	listening.Peer = states
	ctx, cancel := context.WithCancel(t.Context())
	var listener sync.WaitGroup
	listener.Go(func() { _, _ = all[1].server.ServeMCP(ctx, listening) }) // it ends with ctx
	defer func() { cancel(); listener.Wait() }()
	polltest.Until(t, "the client hears of its tasks", func() bool { return states.of(ids[0]) != "" && states.of(ids[1]) != "" })
	cut()
	lost := time.Now()
	polltest.Until(t, "the client hears of the end of both", func() bool {
		return strings.HasPrefix(states.of(ids[0]), "completed") && strings.HasPrefix(states.of(ids[1]), "failed")
	})
	if waited := time.Since(lost); waited > replica.LeaseLife+5*time.Second {
		t.Logf("the client has heard of it after %v; a busy machine takes longer than the lease and 5 s", waited)
	}
	if got := states.of(ids[1]); !strings.Contains(got, "the process that ran the task has ended") {
		t.Errorf("the task that may run only once: %s", got)
	}
	if r := <-begun; r != all[1] {
		t.Error("the lost replica has run the task again")
	}
}
