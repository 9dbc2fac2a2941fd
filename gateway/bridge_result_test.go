package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/mcp"
)

// A result that comes while its call is parked counts until its client fetches it or the call is
// dropped. It is replaced by an error if it exceeds a limit.
func TestResultsOfParkedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Limits{ClientBytes: 1 << 20})
		finish := func(raw string) *bridge {
			b := &bridge{core: &core{opts: Options{Quota: q}}, caller: hub.Caller{Principal: "ada"}}
			b.ctx, b.cancel = context.WithCancelCause(t.Context())
			b.keepResult(&mcp.Response{Raw: []byte(raw)}, nil)
			return b
		}
		wantUsed := func(want int64) {
			t.Helper()
			synctest.Wait()
			if used, _, _ := q.Used(); used != want {
				t.Errorf("%d bytes are counted, want %d", used, want)
			}
		}
		large := strings.Repeat("x", 600<<10)
		first := finish(large)
		wantUsed(600 << 10)
		if _, err := finish(large).takeResult(); err == nil || !strings.Contains(err.Error(), "(clientBytes)") {
			t.Errorf("the second result: %v", err)
		}
		if resp, err := first.takeResult(); err != nil || len(resp.Raw) != len(large) {
			t.Errorf("the first result: %v", err)
		}
		wantUsed(0)
		finish(large).drop(errors.New("no answer"))
		wantUsed(0)
	})
}

// Only a new message of progress changes the task that a call has become. Progress without a
// message keeps the message.
func TestNotificationsThatChangeNoTask(t *testing.T) {
	b := &bridge{promote: make(chan struct{}, 1)}
	b.hosted = &hostedTask{bridge: b}
	wake := b.hosted.followers.addWaker()
	for _, step := range []struct {
		method, params string
		isChange       bool
	}{
		{mcp.NotificationProgress, `{"progress":1,"message":"half"}`, true},
		{mcp.NotificationProgress, `{"progress":2,"message":"half"}`, false},
		{mcp.NotificationProgress, `{"progress":3}`, false},
		{mcp.NotificationMessage, `{"level":"info","data":"half"}`, false},
	} {
		b.passNotification(mcp.Notification{Method: step.method, Params: []byte(step.params)})
		isChange := false
		select {
		case <-wake:
			isChange = true
		default:
		}
		if isChange != step.isChange || b.message != "half" {
			t.Errorf("%s %s: a change: %v, the message is %q", step.method, step.params, isChange, b.message)
		}
	}
}

// A result that its client has seen makes room for new results. Its task is then unknown: it does
// not fail. A result that the client has not seen is kept.
func TestDeliveredResultsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Limits{ClientBytes: 1 << 20})
		c := &core{opts: Options{Quota: q}}
		c.hosted.setUp(c)
		finish := func() *hostedTask {
			b := &bridge{core: c, upstream: new(hub.Upstream), caller: hub.Caller{Principal: "ada"}, done: make(chan struct{})}
			b.ctx, b.cancel = context.WithCancelCause(t.Context())
			task := &hostedTask{id: rand.Text(), principal: "ada", bridge: b, expiry: time.NewTimer(time.Hour)}
			b.hosted, c.hosted.byID[task.id] = task, task
			c.hosted.counts["ada"]++
			b.keepResult(&mcp.Response{Type: mcp.ResultComplete, Raw: []byte(`{"content":["` + strings.Repeat("x", 600<<10) + `"]}`)}, nil)
			close(b.done)
			return task
		}
		get := func(task *hostedTask) error {
			res, err := (&Gateway{core: c, relays: true}).serveHosted(t.Context(), &mcp.Request{Method: mcpwire.MethodGetTask, Revision: mcp.LatestRevision}, task)
			if err == nil && !strings.Contains(string(res.Raw[:200]), `"completed"`) {
				t.Errorf("the state is %.200s", res.Raw)
			}
			return err
		}
		first := finish()
		for range 2 {
			if err := get(first); err != nil {
				t.Fatal(err)
			}
		}
		second := finish()
		synctest.Wait()
		if err := get(first); err != errUnknownTask || c.hosted.findTask("ada", first.id) != nil || c.hosted.counts["ada"] != 1 {
			t.Errorf("the first task: %v, %d tasks", err, c.hosted.counts["ada"])
		}
		if err := get(second); err != nil {
			t.Errorf("the second task: %v", err)
		}
		c.hosted.dropTask(second)
		synctest.Wait()
		if used, _, _ := q.Used(); used != 0 || len(c.hosted.counts) != 0 {
			t.Errorf("%d bytes and %v tasks are counted", used, c.hosted.counts)
		}
	})
}

// One client with many failed tasks makes the gateway forget only its own.
func TestFailedTasksOfEachClientAreBounded(t *testing.T) {
	c := new(core)
	sealed := sealedTask{Created: time.Now().Add(-time.Minute)}
	task := c.keepFailed("ada", sealed, "first", "gone")
	if task.TTLMs == nil || *task.TTLMs < time.Hour.Milliseconds() || task.PollIntervalMs == 0 {
		t.Errorf("%+v", task)
	}
	for i := range 2 * maxFailedTasks {
		c.keepFailed("bob", sealed, strconv.Itoa(i), "gone")
	}
	if c.failed.findTask("first") == nil || c.failed.findTask("0") != nil || len(c.failed.byID) != 1+maxClientFailedTasks {
		t.Errorf("%d tasks are remembered", len(c.failed.byID))
	}
}
