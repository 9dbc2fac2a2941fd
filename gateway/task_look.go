package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// ofLook is the source of states that a look has found.
var ofLook = new(taskListen)

// lookDelay is how long a feed waits before it looks at tasks. Many upstreams tell the states
// right after the acknowledgement.
const lookDelay = 20 * time.Millisecond

// lookLimit bounds a look.
const lookLimit = 30 * time.Second

// shortestLookPause is how long a feed waits at first before it repeats a look that has failed.
const shortestLookPause = time.Second

// taskLook is a look at one task of a feed.
type taskLook struct {
	id      string
	task    *fedTask
	changes int               // of the task, at the begin
	current *taskListen       // of the feed, at the begin
	waiting []*taskSubscriber // of the task, at the begin
}

// startLooks starts a goroutine that looks at tasks, if that is needed. feeds.mu is held.
func (f *taskFeed) startLooks() {
	if f.isLooking {
		wakeUp(f.lookWake)
		return
	}
	if _, t := f.nextLook(); t == nil || f.ctx.Err() != nil {
		return
	}
	f.isLooking = true
	f.work.Go(func() {
		if timeout.Sleep(f.ctx, lookDelay) == nil {
			f.lookAtTasks()
		}
	})
}

// nextLook returns the task with the look that is due first. t is nil if no task needs a look.
// feeds.mu is held.
func (f *taskFeed) nextLook() (id string, t *fedTask) {
	for other, o := range f.tasks {
		if !f.needsLook(other, o) || t != nil && !o.retryAt.Before(t.retryAt) {
			continue
		}
		if id, t = other, o; o.retryAt.IsZero() {
			break
		}
	}
	return id, t
}

// needsLook reports whether a subscriber does not know the state of a task, or whether the task may
// have changed before the current subscription was acknowledged. feeds.mu is held.
func (f *taskFeed) needsLook(id string, t *fedTask) bool {
	isAccepted := f.current != nil && f.current.accepted[id]
	if isAccepted && !t.hasEnded && t.checked != f.current {
		return true
	}
	if !isAccepted && !t.hasEnded {
		return false
	}
	for _, hasState := range t.subscribers {
		if !hasState {
			return true
		}
	}
	return false
}

// lookAtTasks looks at tasks, one at a time, until that is not needed.
func (f *taskFeed) lookAtTasks() {
	for f.ctx.Err() == nil {
		look, wait := f.beginLook()
		switch {
		case wait > 0:
			f.awaitLook(wait)
		case look == nil:
			return
		default:
			task, err := f.readTask(look.id)
			f.endLook(look, task, err)
		}
	}
}

// beginLook returns the next look, or how long it must wait. look is nil and wait is 0 if no task
// needs a look.
func (f *taskFeed) beginLook() (look *taskLook, wait time.Duration) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	id, t := f.nextLook()
	if f.isLooking = t != nil; !f.isLooking {
		return nil, 0
	}
	if wait = time.Until(t.retryAt); wait > 0 {
		return nil, wait
	}
	t.hasMissed = false
	return &taskLook{id, t, t.changes, f.current, slices.Collect(maps.Keys(t.subscribers))}, 0
}

// awaitLook waits until a look is due, or until another task may need one.
func (f *taskFeed) awaitLook(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.lookWake:
	case <-f.ctx.Done():
	}
}

// endLook takes the answer to a look. The look is repeated if the upstream has not answered, or may
// answer otherwise later.
func (f *taskFeed) endLook(look *taskLook, state json.RawMessage, err error) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	t := look.task
	if err != nil && !isUntold(err) {
		t.retryPause = min(max(2*t.retryPause, shortestLookPause), longestPause)
		t.retryAt = time.Now().Add(t.retryPause)
		return
	}
	t.retryPause, t.retryAt = 0, time.Time{}
	if f.tasks[look.id] == t && t.changes == look.changes {
		f.takeLook(look, state)
	}
}

// isUntold reports whether a look has failed for good: the upstream does not know the task, or has
// no tasks/get.
func isUntold(err error) bool {
	answered, ok := errors.AsType[*mcp.Error](err)
	return ok && (answered.Code == jsonrpc.CodeInvalidParams || answered.Code == jsonrpc.CodeMethodNotFound)
}

// takeLook takes the state that a look has found; it is nil if the upstream does not tell it.
// Subscribers from after the begin of such a look want another one. feeds.mu is held.
func (f *taskFeed) takeLook(look *taskLook, state json.RawMessage) {
	t := look.task
	if t.checked = look.current; t.hasMissed {
		t.checked = nil
	}
	if state != nil && t.hasEnded && !hasEnded(state) && creationTime(state) != t.created {
		t.hasEnded = false // the server has begun anew, and has given the id again
		wakeUp(f.wake)
	}
	if state != nil && (hasEnded(state) || !t.hasEnded) {
		t.source = ofLook
		f.passState(t, look.id, state)
		return
	}
	for _, sub := range look.waiting {
		if _, isHere := t.subscribers[sub]; isHere {
			t.subscribers[sub] = true
		}
	}
}

// readTask returns the state of a task at the upstream, in the form of a notification.
func (f *taskFeed) readTask(id string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(f.ctx, lookLimit)
	defer cancel()
	resp, err := f.key.upstream.RoundTrip(ctx, f.key.caller, &mcp.Request{
		Method: mcpwire.MethodGetTask, Params: mcpwire.TaskParams(id, nil), ClientCapabilities: json.RawMessage(f.key.capabilities),
	})
	if err != nil {
		return nil, err
	}
	return rawjson.Set(rawjson.Set(resp.Raw, "resultType", nil), "_meta", nil), nil
}
