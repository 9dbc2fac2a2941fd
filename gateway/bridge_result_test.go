package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/hub"
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

// Only a new message of progress changes the task that a call has become. Progress without a message
// keeps the message.
func TestNotificationsThatChangeNoTask(t *testing.T) {
	b := &bridge{promote: make(chan struct{}, 1)}
	b.hosted = &hostedTask{bridge: b}
	wake := b.hosted.followers.add()
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
