package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/taskstore"
)

// The end of a task of the gateway's own outlives the gateway. A task that had not ended has
// failed, with the cause.
func TestHostedTasksOutliveProcess(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "tasks")
	open := func() (*gateway.Gateway, func()) {
		store := taskstore.OnDisk(folder)
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
		settle(t, h)
		t.Cleanup(func() { store.Close() })
		g := gatewayOf(t, h, gateway.Options{TaskAfter: 20 * time.Millisecond, Tasks: store})
		return g, func() {
			store.Close() // first, since a process that ends stores nothing more
			g.Close()
		}
	}
	first, end := open()
	c := dial(t, first, client.Options{})
	done := startTask(t, c, "up__wait")
	if _, err := client.Call[string](t.Context(), c, "up__release", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := done.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := startTask(t, c, "up__wait")
	cancelled := startTask(t, c, "up__hang")
	if err := cancelled.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()

	second, _ := open()
	get := func(id string) string {
		res, err := second.ServeMCP(t.Context(), taskRequest("", mcpwire.MethodGetTask, `{"taskId":"`+id+`"}`))
		if err != nil {
			return err.Error()
		}
		return string(res.Raw)
	}
	for id, want := range map[string]string{done.ID(): "rested", cancelled.ID(): `"cancelled"`, lost.ID(): "the dowel that ran the call has ended"} {
		if got := get(id); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	awaitState(t, followTasks(t, second, lost.ID()), "failed")
	for _, method := range []string{mcpwire.MethodGetTask, mcpwire.MethodCancelTask} {
		if _, err := second.ServeMCP(t.Context(), taskRequest("bob", method, `{"taskId":"`+done.ID()+`"}`)); err == nil {
			t.Errorf("%s: another principal sees the task", method)
		}
	}
	if _, err := second.ServeMCP(t.Context(), taskRequest("", mcpwire.MethodCancelTask, `{"taskId":"`+done.ID()+`"}`)); err != nil || !strings.Contains(get(done.ID()), "rested") {
		t.Errorf("cancelled after its end: %v, %s", err, get(done.ID()))
	}
}

// unreadableStore is a store that cannot be read while the test says so, and that keeps no result.
type unreadableStore struct {
	tasks.Store
	broken    atomic.Bool
	isFull    atomic.Bool
	noResults bool
}

func (s *unreadableStore) Replace(ctx context.Context, r *tasks.Record) error {
	if s.noResults && r.Result != nil {
		return tasks.ErrTooLarge
	}
	if s.isFull.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.Replace(ctx, r)
}

func (s *unreadableStore) Load(ctx context.Context, id string) (*tasks.Record, error) {
	if s.broken.Load() {
		return nil, errors.New("the disk does not answer")
	}
	return s.Store.Load(ctx, id)
}

// A task that cannot be read now is not unknown: a client would forget it.
func TestStoreCannotReadTask(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := &unreadableStore{Store: new(tasks.Memory)}
	end := &tasks.Record{ID: "AAAA", Space: "gateway", Tool: "wait", Params: []byte(`{"upstream":"up"}`), Status: tasks.Completed,
		Created: now, Updated: now, TTL: time.Hour, Result: []byte(`{"content":[]}`)}
	if err := store.Create(t.Context(), end, 0); err != nil {
		t.Fatal(err)
	}
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{Tasks: store, Logger: quiet})
	get := taskRequest("", mcpwire.MethodGetTask, `{"taskId":"AAAA"}`)
	if _, err := g.ServeMCP(t.Context(), get); err != nil {
		t.Fatal(err)
	}
	store.broken.Store(true)
	if _, err := g.ServeMCP(t.Context(), get); code(err, jsonrpc.CodeInternal) != nil || strings.Contains(err.Error(), "disk") {
		t.Error(err)
	}
	store.broken.Store(false)
	if _, err := g.ServeMCP(t.Context(), get); err != nil {
		t.Error(err)
	}
}

// A client that only listens hears of an end that could not be stored at first.
func TestListenerHearsOfEndStoredLater(t *testing.T) {
	t.Parallel()
	store := &unreadableStore{Store: new(tasks.Memory)}
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{TaskAfter: 20 * time.Millisecond, Tasks: store, Logger: quiet})
	task := startTask(t, dial(t, g, client.Options{}), "up__wait")
	states := followTasks(t, g, task.ID())
	awaitState(t, states, "working")
	store.isFull.Store(true)
	withoutTasks := dial(t, gatewayOf(t, h, gateway.Options{Logger: quiet}), client.Options{})
	if _, err := client.Call[string](t.Context(), withoutTasks, "up__release", nil); err != nil {
		t.Fatal(err)
	}
	awaitState(t, states, "working the task has ended, but its end cannot be stored yet")
	store.isFull.Store(false)
	awaitState(t, states, "completed")
}

// If another replica has failed a task, polls and subscriptions never show the result of its call,
// also while the store cannot be read.
func TestStoredEndIsShown(t *testing.T) {
	t.Parallel()
	store := &unreadableStore{Store: new(tasks.Memory)}
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{TaskAfter: 20 * time.Millisecond, Tasks: store, Logger: quiet})
	c := dial(t, g, client.Options{})
	task := startTask(t, c, "up__wait")
	_, _, err := tasks.Update(t.Context(), store, task.ID(), func(next *tasks.Record) bool {
		next.Status, next.Message = tasks.Failed, "the replica was cut off"
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[string](t.Context(), c, "up__release", nil); err != nil {
		t.Fatal(err)
	}
	get := taskRequest("", mcpwire.MethodGetTask, `{"taskId":"`+task.ID()+`"}`)
	polltest.Until(t, "the end", func() bool {
		res, err := g.ServeMCP(t.Context(), get)
		return err == nil && strings.Contains(string(res.Raw), `"failed"`)
	})
	store.broken.Store(true)
	if res, err := g.ServeMCP(t.Context(), get); code(err, jsonrpc.CodeInternal) != nil {
		t.Errorf("%+v, %v", res, err)
	}
	states := followTasks(t, g, task.ID())
	select {
	case state := <-states:
		t.Errorf("a subscription shows %s", state)
	case <-time.After(200 * time.Millisecond):
	}
	store.broken.Store(false)
	select {
	case state := <-states:
		if !strings.Contains(state, " failed ") {
			t.Errorf("a subscription shows %s", state)
		}
	case <-time.After(time.Minute):
		t.Error("a subscription shows no end")
	}
}

// A result that is too large for the store fails the task. The tasks of earlier processes do not
// count against the limit of a principal.
func TestStoreRefusesResult(t *testing.T) {
	t.Parallel()
	store := &unreadableStore{Store: new(tasks.Memory), noResults: true}
	for n := range 1000 {
		r := &tasks.Record{ID: fmt.Sprint("OLD", n), Space: "gateway", Status: tasks.Failed, Created: time.Now(), TTL: time.Hour}
		if err := store.Create(t.Context(), r, 0); err != nil {
			t.Fatal(err)
		}
	}
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
	settle(t, h)
	c := dial(t, gatewayOf(t, h, gateway.Options{TaskAfter: 20 * time.Millisecond, Tasks: store, Logger: quiet}), client.Options{})
	task := startTask(t, c, "up__wait")
	withoutTasks := dial(t, gatewayOf(t, h, gateway.Options{Logger: quiet}), client.Options{}) // on a busy machine release becomes a task, too
	if _, err := client.Call[string](t.Context(), withoutTasks, "up__release", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := task.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "the result of the task is lost") {
		t.Error(err)
	}
	if state := stateOf(t, task); state.Status != "failed" {
		t.Errorf("%+v", state)
	}
}

// If the store cannot keep a task, a slow call stays a call, and a call that asks for a task is
// refused with the reason.
func TestStoreCannotKeepTasks(t *testing.T) {
	t.Parallel()
	store := taskstore.OnDisk(filepath.Join(t.TempDir(), "tasks"))
	store.Close()
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("slow")})
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{TaskAfter: time.Millisecond, Tasks: store})
	c := dial(t, g, client.Options{})
	if _, err := client.Call[string](t.Context(), c, "up__release", nil); err != nil {
		t.Fatal(err)
	}
	if text, err := client.Call[string](t.Context(), c, "up__wait", nil); err != nil || text != "rested" {
		t.Error(text, err)
	}
	req := taskRequest("", mcp.MethodCallTool, `{"name":"up__own_task","arguments":{},"task":{}}`)
	req.Revision = mcp.Revision20251125
	if _, err := g.ServeMCP(t.Context(), req); err == nil || !strings.Contains(err.Error(), "store of tasks is closed") {
		t.Error(err)
	}
}
