package client

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// While notifications tell the state of a task, the client polls at slowPollFactor times the
// server's interval, within minSlowPoll and maxSlowPoll, because a notification may be lost. It
// never polls more often than the server wants.
const (
	slowPollFactor = 10
	minSlowPoll    = 5 * time.Second
	maxSlowPoll    = time.Minute
)

// taskListener is a subscription to the states of one task. All methods may be called concurrently.
type taskListener struct {
	id     string
	cancel context.CancelFunc
	done   chan struct{} // closed after the subscription has ended
	wake   chan struct{} // has a token after a change of the rest

	mu        sync.Mutex    // guards the rest
	isActive  bool          // the server has accepted the task, and the subscription has not ended
	mayReopen bool          // the subscription has ended after steadyAfter
	latest    *mcpwire.Task // the newest state that was not taken, or nil
}

// listenToTask subscribes to the states of a task (extension of tasks, Task Status Notifications).
// The caller must call close.
func (c *Client) listenToTask(ctx context.Context, id string) *taskListener {
	ctx, cancel := context.WithCancel(ctx)
	l := &taskListener{id: id, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	go func() {
		defer close(l.done)
		began := time.Now()
		if err := l.runRequest(ctx, c); err != nil && ctx.Err() == nil {
			c.opts.Logger.Debug("the server sends no notifications of a task", "server", c.serverName(), "err", err)
		}
		l.endSubscription(time.Since(began) >= steadyAfter)
	}()
	return l
}

// runRequest returns after the subscription has ended.
func (l *taskListener) runRequest(ctx context.Context, c *Client) error {
	ids, err := mcp.Encode([]string{l.id})
	if err != nil {
		return err
	}
	filter := mcp.SubscriptionFilter{Extensions: map[string]json.RawMessage{mcpwire.ListenTasks: ids}}
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: filter})
	if err != nil {
		return err
	}
	link, err := c.conn.acquireLink(ctx, 0)
	if err != nil {
		return err
	}
	_, err = link.transport.RoundTrip(mcpwire.WithInlineNotify(ctx), &mcp.Request{
		Method: mcp.MethodListen, Params: params, ClientCapabilities: c.withTasks, Notify: l.handleNotification,
	})
	return err
}

// closeListener ends the subscription and waits for its end.
func (l *taskListener) closeListener() {
	l.cancel()
	<-l.done
}

// handleNotification never waits, and calls no code of the user.
func (l *taskListener) handleNotification(n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationAcknowledged:
		var p mcp.ListenParams
		var accepted []string
		if mcp.Decode(n.Params, &p) == nil && mcp.Decode(p.Notifications.Extensions[mcpwire.ListenTasks], &accepted) == nil &&
			slices.Contains(accepted, l.id) {
			l.acceptTask()
		} else {
			l.cancel() // the server sends nothing about the task
		}
	case mcpwire.NotificationTask:
		if task, err := readTask(n.Params); err == nil && task.TaskID == l.id {
			l.addState(task)
		}
	}
}

func (l *taskListener) acceptTask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isActive = true
	l.wakeUp()
}

// addState replaces the state that was not taken, unless that one is final or newer.
func (l *taskListener) addState(task *mcpwire.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latest != nil && (l.latest.HasEnded() || isOlder(task, updateTime(l.latest))) {
		return
	}
	l.latest = task
	l.wakeUp()
}

func (l *taskListener) endSubscription(isSteady bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mayReopen = l.isActive && isSteady
	l.isActive = false
	l.wakeUp()
}

// wakeUp wakes the wait. The caller holds l.mu.
func (l *taskListener) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// takeState returns the newest state that was not taken, or nil.
func (l *taskListener) takeState() *mcpwire.Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	task := l.latest
	l.latest = nil
	return task
}

// state reports whether notifications of the task arrive, and whether a subscription that has ended
// may be opened again.
func (l *taskListener) state() (isActive, mayReopen bool) {
	if l == nil {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isActive, l.mayReopen
}

// updateTime returns the time of the task's state, or zero if it cannot be read.
func updateTime(task *mcpwire.Task) time.Time {
	t, _ := time.Parse(time.RFC3339, task.LastUpdatedAt)
	return t
}

// isOlder reports whether the state of the task is known to be older than known.
func isOlder(task *mcpwire.Task, known time.Time) bool {
	t := updateTime(task)
	return !t.IsZero() && t.Before(known)
}
