package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// While one subscription replaces another one, both tell states, in any order. A subscriber gets no
// old state after a newer one, and the feed looks at the task if the order is not known.
func TestOrderOfTwoSubscriptions(t *testing.T) {
	one, two := new(taskListen), new(taskListen)
	f := &taskFeed{feeds: new(taskFeeds), wake: make(chan struct{}, 1), lookWake: make(chan struct{}, 1), current: one, next: two}
	f.ctx, f.cancel = context.WithCancel(t.Context())
	f.cancel() // no look begins
	sub := &taskSubscriber{feed: f, wake: make(chan struct{}, 1), states: map[string]json.RawMessage{}}
	task := &fedTask{subscribers: map[*taskSubscriber]bool{sub: false}}
	f.tasks = map[string]*fedTask{"a": task}
	for i, step := range []struct {
		from           *taskListen
		status         string
		second         int
		isTold, isLook bool
	}{
		{one, "working", 1, true, false},
		{two, "working", 1, false, false},
		{two, "input_required", 2, true, false},
		{one, "working", 1, false, true},
		{one, "input_required", 2, false, false},
		{one, "working", 3, true, false},
		{two, "input_required", 2, false, true},
		{two, "working", 3, false, false},
		{two, "input_required", 3, true, false},
		{one, "working", 3, false, true},
		{one, "completed", 3, true, false},
		{two, "input_required", 4, false, false},
		{two, "completed", 4, false, false},
	} {
		raw := fmt.Sprintf(`{"taskId":"a","status":%q,"lastUpdatedAt":"2026-01-01T00:00:%02dZ"}`, step.status, step.second)
		f.handleNotification(step.from, mcp.Notification{Method: mcpwire.NotificationTask, Params: json.RawMessage(raw)})
		_, state := sub.takeState()
		if isTold := string(state) == raw; isTold != step.isTold || !isTold && state != nil {
			t.Errorf("step %d: the subscriber has got %s", i, state)
		}
		if isLook := task.checked == nil; isLook != step.isLook {
			t.Errorf("step %d: a look is needed: %v", i, isLook)
		}
	}
}
