package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// A feed follows a change from two subscriptions/listen while one replaces the other, and looks at
// tasks with tasks/get. These may arrive in any order. One subscription keeps the order of the
// upstream. A state from another source counts as newer only if its lastUpdatedAt says so, or if it
// is the end of the task; otherwise the feed leaves it out and looks at the task. The answer to a
// look counts if the subscribers have got no state meanwhile.

// fedTask is a task that a feed follows. It is guarded by feeds.mu.
type fedTask struct {
	subscribers map[*taskSubscriber]bool // true for each that has the newest state
	source      *taskListen              // of the newest state; nil if there is none
	checked     *taskListen              // the subscription that has told the newest state, or under which a look has
	state       string                   // tells the newest state from others
	updated     time.Time                // of the newest state; zero if that is not known
	created     string                   // createdAt of the newest state
	hasEnded    bool
	changes     int           // counts the states that subscribers have got
	hasMissed   bool          // a state was left out after the begin of the newest look
	retryAt     time.Time     // no look before; zero unless the newest look has failed
	retryPause  time.Duration // before the next look after one that has failed
}

// taskListen is one subscriptions/listen of a feed.
type taskListen struct {
	ids    map[string]bool
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid after done is closed

	accepted map[string]bool // nil before the acknowledgement; guarded by feeds.mu
	hasEnded bool            // guarded by feeds.mu
}

// ackLimit is how long an upstream may take to acknowledge the subscription of several subscribers.
// Then those that wait for it try again, each alone.
const ackLimit = 10 * time.Second

// isLate reports whether the acknowledgement takes too long. l may be nil. feeds.mu is held.
func (l *taskListen) isLate() bool {
	return l != nil && l.accepted == nil && !l.hasEnded && time.Since(l.began) >= ackLimit
}

// end ends the subscription, and waits for its end.
func (l *taskListen) end() {
	l.cancel()
	<-l.done
}

// mayCover reports whether the subscription was for all tasks of a subscriber.
func (l *taskListen) mayCover(sub *taskSubscriber) bool {
	return !slices.ContainsFunc(sub.ids, func(id string) bool { return !l.ids[id] && !sub.feed.tasks[id].hasEnded })
}

// openListen opens a subscription for all tasks that have not ended. feeds.mu is held.
func (f *taskFeed) openListen() *taskListen {
	l := &taskListen{ids: map[string]bool{}, began: time.Now(), done: make(chan struct{})}
	for id, t := range f.tasks {
		if !t.hasEnded {
			l.ids[id] = true
		}
	}
	ctx, cancel := context.WithCancel(f.ctx)
	l.cancel = cancel
	f.work.Go(func() {
		defer close(l.done)
		defer time.AfterFunc(ackLimit, func() { wakeUp(f.wake) }).Stop()
		l.err = f.listen(ctx, l)
		f.feeds.mu.Lock()
		defer f.feeds.mu.Unlock()
		l.hasEnded = true
		wakeUp(f.wake)
	})
	return l
}

// listen sends the request of a subscription, and returns when it has ended.
func (f *taskFeed) listen(ctx context.Context, l *taskListen) error {
	ids, err := mcp.Encode(slices.Sorted(maps.Keys(l.ids)))
	if err != nil {
		return err
	}
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{Extensions: map[string]json.RawMessage{mcpwire.ListenTasks: ids}}})
	if err != nil {
		return err
	}
	_, err = f.key.upstream.RoundTrip(ctx, f.key.caller, &mcp.Request{
		Method: mcp.MethodListen, Params: params, ClientCapabilities: json.RawMessage(f.key.capabilities),
		Notify: func(n mcp.Notification) { f.handleNotification(l, n) },
	})
	return err
}

// handleNotification takes a notification of a subscription.
func (f *taskFeed) handleNotification(l *taskListen, n mcp.Notification) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	switch n.Method {
	case mcp.NotificationAcknowledged:
		l.accepted = map[string]bool{}
		for it := rawjson.Array(rawjson.Lookup(rawjson.Lookup(n.Params, "notifications"), mcpwire.ListenTasks)); it.Next(); {
			if id, ok := rawjson.String(it.Value); ok {
				l.accepted[id] = true
			}
		}
		wakeUp(f.wake)
	case mcpwire.NotificationTask:
		id, _ := rawjson.String(rawjson.Lookup(n.Params, "taskId"))
		if t := f.tasks[id]; t != nil {
			f.takeNotified(t, id, l, withoutSubscriptionID(n.Params))
		}
	}
}

// takeNotified takes a state that a subscription tells. feeds.mu is held.
func (f *taskFeed) takeNotified(t *fedTask, id string, l *taskListen, task json.RawMessage) {
	state, updated := identifyState(task)
	switch {
	case t.hasEnded && state != t.state: // a task does not leave its end
		return
	case state != t.state && t.source != nil && t.source != l && !updated.After(t.updated) && !hasEnded(task):
		t.checked, t.hasMissed = nil, true // the order is not known
		f.startLooks()
		return
	}
	t.source = l
	if l == f.current || l == f.next {
		t.checked = l
	}
	f.passState(t, id, task)
}

// passState passes a state to the subscribers that do not have it. Of a task that has ended, each
// subscriber gets one state. feeds.mu is held.
func (f *taskFeed) passState(t *fedTask, id string, task json.RawMessage) {
	state, updated := identifyState(task)
	isNew := state != t.state && !t.hasEnded
	t.state, t.updated, t.hasEnded, t.created = state, updated, hasEnded(task), creationTime(task)
	t.changes++
	for sub, hasState := range t.subscribers {
		if isNew || !hasState {
			t.subscribers[sub] = true
			sub.addState(id, task)
		}
	}
}

// creationTime returns the time of a task's creation, as it is written.
func creationTime(task json.RawMessage) string {
	text, _ := rawjson.String(rawjson.Lookup(task, "createdAt"))
	return text
}

// identifyState returns what tells the state of a task from others, and its time.
func identifyState(task json.RawMessage) (state string, updated time.Time) {
	text, _ := rawjson.String(rawjson.Lookup(task, "lastUpdatedAt"))
	updated, _ = time.Parse(time.RFC3339, text)
	for _, name := range []string{"lastUpdatedAt", "status", "statusMessage", "inputRequests"} {
		state += string(rawjson.Lookup(task, name)) + "\n"
	}
	return state, updated
}
