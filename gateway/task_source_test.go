package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// taskSource is a server of 2026-07-28 whose tasks a test changes. It tells changes only, and not
// the states at the begin of a subscription, which the extension does not demand.
type taskSource struct {
	refuse   func(ids []string) error // may be nil
	hang     func(ids []string) bool  // without an acknowledgement; may be nil
	get      func(id, task string) (string, error)
	afterAck func(l *sourceListen) // may be nil

	mu      sync.Mutex
	tasks   map[string]string // from the id to the state
	listens map[*sourceListen]bool
	most    int // of listens at the same time
	opened  int // all listens
}

// sourceListen is one open subscription.
type sourceListen struct {
	ids  []string
	tell func(task string)
	end  context.CancelCauseFunc
}

func (*taskSource) Extensions() []mcp.Extension { return []mcp.Extension{mcpwire.TasksExtension()} }

func (s *taskSource) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodCallTool:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tasks == nil {
			s.tasks, s.listens = map[string]string{}, map[*sourceListen]bool{}
		}
		id := fmt.Sprintf("task%d", len(s.tasks))
		s.tasks[id] = stateAt(id, "working", 0)
		return &mcp.Result{Type: mcpwire.ResultTask, Raw: json.RawMessage(s.tasks[id])}, nil
	case mcpwire.MethodGetTask:
		var p struct{ TaskID string }
		_ = json.Unmarshal(req.Params, &p)
		s.mu.Lock()
		task, get := s.tasks[p.TaskID], s.get
		s.mu.Unlock()
		if get != nil {
			var err error
			if task, err = get(p.TaskID, task); err != nil {
				return nil, err
			}
		}
		return &mcp.Result{Raw: json.RawMessage(task)}, nil
	case mcp.MethodListen:
		return nil, s.listen(ctx, req)
	}
	return (&scriptedUpstream{}).ServeMCP(ctx, req)
}

func (s *taskSource) listen(ctx context.Context, req *mcp.Request) error {
	var p mcp.ListenParams
	l := &sourceListen{}
	if err := mcp.Decode(req.Params, &p); err != nil {
		return err
	}
	if err := mcp.Decode(p.Notifications.Extensions[mcpwire.ListenTasks], &l.ids); err != nil {
		return err
	}
	if s.refuse != nil {
		if err := s.refuse(l.ids); err != nil {
			return err
		}
	}
	if s.hang != nil && s.hang(l.ids) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	ctx, l.end = context.WithCancelCause(ctx)
	defer l.end(nil)
	l.tell = func(task string) {
		_ = req.Peer.Change(ctx, mcp.Notification{Method: mcpwire.NotificationTask, Params: json.RawMessage(task)})
	}
	s.mu.Lock()
	s.listens[l] = true
	s.opened++
	s.most = max(s.most, len(s.listens))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listens, l)
	}()
	if err := req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: req.Params}); err != nil {
		return err
	}
	if s.afterAck != nil {
		s.afterAck(l)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// answerLooks lets get answer each tasks/get from now on.
func (s *taskSource) answerLooks(get func(id, task string) (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get = get
}

// open returns the open subscriptions.
func (s *taskSource) open() []*sourceListen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.listens))
}

// change changes a task, and tells so on all subscriptions to it.
func (s *taskSource) change(id, status string, second int) {
	task := stateAt(id, status, second)
	s.mu.Lock()
	s.tasks[id] = task
	s.mu.Unlock()
	for _, l := range s.open() {
		if slices.Contains(l.ids, id) {
			l.tell(task)
		}
	}
}

// stateAt returns the state of a task that was changed at a second.
func stateAt(id, status string, second int) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:%02dZ","ttlMs":null,"result":{"content":[]}}`, id, status, second)
}

// taskClient is a subscription of a client.
type taskClient struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	accepted string
	states   []string // "working 0": the status and the second
	hold     chan struct{}
}

func (*taskClient) Notify(context.Context, mcp.Notification) error { return nil }

func (c *taskClient) Change(ctx context.Context, n mcp.Notification) error {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil && n.Method == mcpwire.NotificationTask {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.Method == mcp.NotificationAcknowledged {
		c.accepted = string(n.Params)
		return nil
	}
	var task struct{ Status, LastUpdatedAt string }
	if err := json.Unmarshal(n.Params, &task); err != nil {
		return err
	}
	c.states = append(c.states, task.Status+" "+strings.TrimPrefix(task.LastUpdatedAt, "2026-01-01T00:00:"))
	return nil
}

// seen returns the states that the client has got.
func (c *taskClient) seen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ReplaceAll(strings.Join(c.states, ", "), "Z", "")
}

// listenAs opens a subscription of a principal.
func listenAs(t *testing.T, g *gateway.Gateway, principal string, ids ...string) *taskClient {
	t.Helper()
	raw, _ := json.Marshal(ids)
	c := &taskClient{ended: make(chan struct{})}
	req := taskRequest(principal, mcp.MethodListen, `{"notifications":{"`+mcpwire.ListenTasks+`":`+string(raw)+`}}`)
	req.Peer = c
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = func() { cancel(); <-c.ended }
	go func() { defer close(c.ended); _, _ = g.ServeMCP(ctx, req) }()
	t.Cleanup(c.cancel)
	return c
}

// makeTask returns the id of a new task of a principal.
func makeTask(t *testing.T, g *gateway.Gateway, principal string) string {
	t.Helper()
	res, err := g.ServeMCP(t.Context(), taskRequest(principal, mcp.MethodCallTool, `{"name":"up__t","arguments":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	var task struct{ TaskID string }
	if err := json.Unmarshal(res.Raw, &task); err != nil || task.TaskID == "" {
		t.Fatal(res, err)
	}
	return task.TaskID
}

// testFeed runs a test with a gateway over s, in the time of a bubble.
func testFeed(t *testing.T, s *taskSource, f func(t *testing.T, g *gateway.Gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: s})
		settle(t, h)
		f(t, gatewayOf(t, h, gateway.Options{}))
	})
}

// pass lets everything happen that takes less than a second.
func pass() {
	time.Sleep(time.Second) // of the bubble's clock
	synctest.Wait()
}

func wantSeen(t *testing.T, c *taskClient, want string) {
	t.Helper()
	if got := c.seen(); got != want {
		t.Errorf("the client has got %q, want %q", got, want)
	}
}
