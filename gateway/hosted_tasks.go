package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// maxHostedTasks bounds the kept tasks of one principal, and maxRunningTasks its tasks
	// that have not ended. Each of these holds a call of an upstream.
	maxHostedTasks  = 1000
	maxRunningTasks = 100
)

var (
	errTaskCancelled = errors.New("the client has cancelled the task")
	errTaskExpired   = errors.New("the task has reached its time to live")
	errShuttingDown  = errors.New("the gateway is shutting down")
)

// hostedTasks are the tasks of a gateway's own. Their calls end with the process; the store keeps
// their ends.
type hostedTasks struct {
	core *core
	work sync.WaitGroup // of watchTools and failIfWithdrawn

	mu        sync.Mutex // guards the rest
	byID      map[string]*hostedTask
	counts    map[string]int     // of tasks and reserved rooms, by principal
	running   map[string]int     // of tasks that have not ended and reserved rooms, by principal
	reserved  map[*bridge]string // the principals of calls with a reserved room
	stopWatch func()             // ends watchTools; nil if no task runs
	closed    bool
}

// setUp prepares the zero value.
func (h *hostedTasks) setUp(c *core) {
	h.core, h.byID, h.counts, h.running = c, map[string]*hostedTask{}, map[string]int{}, map[string]int{}
	h.reserved = map[*bridge]string{}
}

// reserveRoom keeps room for the task of a call until the call is a task or releaseRoom. It fails
// if the principal has too many tasks, the gateway shuts down, or the store keeps no tasks.
func (h *hostedTasks) reserveRoom(b *bridge, principal string) error {
	if err := h.prepareStore(); err != nil {
		h.core.opts.Logger.Error("no tasks can be made", "err", err)
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", err)
	}
	if !h.takeRoom(b, principal) {
		return mcp.Errorf(jsonrpc.CodeInternal, "%d tasks of the client run, or %d are kept, which is the limit of this server: try again later", maxRunningTasks, maxHostedTasks)
	}
	return nil
}

// takeRoom makes sure that a call has room for its task. It reports false if the principal has too
// many tasks, or the gateway shuts down.
func (h *hostedTasks) takeRoom(b *bridge, principal string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, has := h.reserved[b]; has && !h.closed {
		return true
	}
	if !h.mayAdd(principal) {
		return false
	}
	h.reserved[b] = principal
	h.counts[principal]++
	h.running[principal]++
	return true
}

// releaseRoom gives back the reserved room of a call that becomes no task. It does nothing if the
// call has none.
func (h *hostedTasks) releaseRoom(b *bridge) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if principal, has := h.reserved[b]; has {
		delete(h.reserved, b)
		decrease(h.counts, principal)
		h.decreaseRunning(principal)
	}
}

// mayAdd reports whether a principal may have one more task. h.mu is held.
func (h *hostedTasks) mayAdd(principal string) bool {
	return !h.closed && h.counts[principal] < maxHostedTasks && h.running[principal] < maxRunningTasks
}

// addTask makes a task of a call. It returns nil if the gateway shuts down, if the call has no room
// and the client has too many tasks, or if the store does not keep the task.
func (h *hostedTasks) addTask(b *bridge, principal, tool string) *hostedTask {
	if !h.takeRoom(b, principal) { // before the store gets a record
		return nil
	}
	now := time.Now()
	t := &hostedTask{id: rand.Text(), principal: principal, tool: tool, bridge: b, created: now, updated: now}
	if err := h.storeNew(t); err != nil {
		h.core.opts.Logger.Error("a call cannot become a task", "server", b.upstream.Name(), "tool", tool, "err", err)
		h.releaseRoom(b)
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil // the record of the task expires
	}
	delete(h.reserved, b) // the task has its room
	h.byID[t.id] = t
	t.expiry = time.AfterFunc(hostedTaskTTL, func() { h.dropTask(t) })
	if h.stopWatch == nil {
		h.startWatch()
	}
	h.work.Go(func() { h.failIfWithdrawn(t) }) // the tool may have been withdrawn during the call
	return t
}

// dropTask forgets a task that has expired, and cancels its call.
func (h *hostedTasks) dropTask(t *hostedTask) {
	h.removeTask(t)
	t.bridge.drop(errTaskExpired)
}

// removeTask forgets a task.
func (h *hostedTasks) removeTask(t *hostedTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID[t.id] == t {
		delete(h.byID, t.id)
		t.expiry.Stop()
		decrease(h.counts, t.principal)
	}
}

// endRun counts a task as ended, and tells the subscriptions that follow it. The call has ended.
func (h *hostedTasks) endRun(t *hostedTask) {
	_, _ = t.describeTask(context.Background()) // stores the end
	h.mu.Lock()
	h.decreaseRunning(t.principal)
	h.mu.Unlock()
	t.noteChange()
}

// decreaseRunning counts a running task of a principal less, and ends watchTools after the last one
// of all. h.mu is held.
func (h *hostedTasks) decreaseRunning(principal string) {
	decrease(h.running, principal)
	if len(h.running) == 0 && h.stopWatch != nil {
		h.stopWatch()
		h.stopWatch = nil
	}
}

// decrease subtracts one, and removes the key at 0.
func decrease(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// findTask returns the task of a principal, or nil.
func (h *hostedTasks) findTask(principal, id string) *hostedTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.byID[id]; t != nil && t.principal == principal {
		return t
	}
	return nil
}

// startWatch starts watchTools. h.mu is held.
func (h *hostedTasks) startWatch() {
	ctx, stop := context.WithCancel(context.Background())
	h.stopWatch = stop
	events := h.core.hub.Events(ctx, hub.CatalogChanged, hub.StateChanged)
	h.work.Go(func() {
		defer stop()
		for range events {
			h.failWithdrawn()
		}
	})
}

// failWithdrawn fails the tasks whose tool is not offered any more.
func (h *hostedTasks) failWithdrawn() {
	h.mu.Lock()
	all := make([]*hostedTask, 0, len(h.byID))
	for _, t := range h.byID {
		all = append(all, t)
	}
	h.mu.Unlock()
	for _, t := range all {
		h.failIfWithdrawn(t)
	}
}

// failIfWithdrawn fails a task if its tool is not offered any more.
func (h *hostedTasks) failIfWithdrawn(t *hostedTask) {
	if why := h.core.withdrawalReason(t.bridge.upstream.Name(), t.tool); why != "" {
		t.failTask(mcp.Errorf(jsonrpc.CodeInternal, "%s", why))
	}
}

// closeAll cancels the calls of all tasks, and refuses new ones.
func (h *hostedTasks) closeAll() {
	h.mu.Lock()
	h.closed = true
	for _, t := range h.byID {
		t.expiry.Stop()
		t.bridge.drop(errShuttingDown)
	}
	clear(h.byID)
	if h.stopWatch != nil {
		h.stopWatch()
		h.stopWatch = nil
	}
	h.mu.Unlock()
	h.work.Wait()
}

// taskWakers wake the goroutines that wait for a change of a task. The zero value is ready.
type taskWakers struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{}
}

// addWaker returns a channel that gets a token after each change.
func (w *taskWakers) addWaker() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[chan struct{}]struct{}{}
	}
	wake := make(chan struct{}, 1)
	w.all[wake] = struct{}{}
	return wake
}

func (w *taskWakers) removeWaker(wake chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, wake)
}

func (w *taskWakers) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wake := range w.all {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}
