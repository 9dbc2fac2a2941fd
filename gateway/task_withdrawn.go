package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// A task ends when its tool or its upstream is withdrawn: the configuration has removed, disabled
// or hidden it, its changed definition is held, or the server has removed the tool. The task has
// then failed, with the reason. An upstream that starts again or cannot be reached is not
// withdrawn.

// withdrawalReason says why the tasks of an upstream's tool have ended. It returns "" if they may
// run on. tool is the upstream's name of it.
func (c *core) withdrawalReason(upstream, tool string) string {
	u := c.hub.Upstream(upstream)
	if u == nil {
		return "the server " + upstream + " was removed"
	}
	switch state := u.State(); {
	case state.Status.Held():
		return (&hub.DownError{Upstream: upstream, State: state}).Error()
	case state.Status != hub.Ready || c.offersTool(u, tool): // the lists may be old while it is not ready
		return ""
	}
	for _, q := range u.Quarantined() {
		if q.Kind == catalog.Tool && q.Name == tool {
			return fmt.Sprintf("the tool %s of the server %s is not offered any more: %s", tool, upstream, q.Reason)
		}
	}
	return fmt.Sprintf("the tool %s of the server %s is not offered any more", tool, upstream)
}

// offersTool reports whether the catalog has an upstream's tool.
func (c *core) offersTool(u *hub.Upstream, tool string) bool {
	all := c.hub.Catalog()
	if item := all.FindLocal(u, catalog.Tool, tool); item != nil && item.Name == tool {
		return true
	}
	for _, item := range all.Items(catalog.Tool) { // the tool is renamed
		if item.Upstream == u && item.Name == tool {
			return true
		}
	}
	return false
}

// maxFailedTasks bounds the tasks of upstreams that are remembered as failed, and
// maxClientFailedTasks the remembered tasks of one principal. The oldest is forgotten first.
const (
	maxFailedTasks       = 1000
	maxClientFailedTasks = 100
)

// failedTasks remembers the tasks of upstreams that have failed because they were withdrawn. So
// they stay failed when the tool is there again. The zero value is ready.
type failedTasks struct {
	mu    sync.Mutex
	byID  map[string]*mcpwire.Task
	order []failedTask // the oldest first
}

// failedTask identifies a task that has failed.
type failedTask struct{ principal, id string }

// findTask returns a task that has failed, or nil.
func (f *failedTasks) findTask(id string) *mcpwire.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

// failWithdrawn makes a task of an upstream one that has failed, and cancels it at the upstream if
// that can be done. It returns nil if the task may continue.
func (g *Gateway) failWithdrawn(ctx context.Context, req *mcp.Request, t sealedTask, id string) *mcpwire.Task {
	if g.relays {
		return nil
	}
	if known := g.failed.findTask(id); known != nil {
		return known
	}
	why := g.withdrawalReason(t.Upstream, t.Tool)
	if why == "" {
		return nil
	}
	task := g.keepFailed(req.Principal.ID, t, id, why)
	if u := g.hub.Upstream(t.Upstream); u != nil && u.State().Status == hub.Ready && g.parked.startWork() {
		own := upstreamRequest(req, mcpwire.TaskParams(t.ID, nil), nil)
		own.Method = mcpwire.MethodCancelTask
		go func() {
			defer g.parked.endWork()
			g.cancelWithdrawn(context.WithoutCancel(ctx), u, callerOf(req), own)
		}()
	}
	return task
}

// keepFailed remembers that a task of an upstream has failed, and returns its state.
func (c *core) keepFailed(principal string, t sealedTask, id, why string) *mcpwire.Task {
	now := time.Now()
	ttl := (now.Sub(t.Created) + hostedTaskTTL).Milliseconds()
	task := &mcpwire.Task{
		TaskID: id, CreatedAt: t.Created.UTC().Format(mcpwire.TaskTimeFormat), LastUpdatedAt: now.UTC().Format(mcpwire.TaskTimeFormat),
		TTLMs: &ttl, PollIntervalMs: hostedTaskPoll.Milliseconds(),
	}
	describeTaskFailure(task, mcp.Errorf(jsonrpc.CodeInternal, "%s", why))
	return c.failed.addTask(principal, id, task)
}

// lostReason says why an upstream does not know a task any more that it has made: the process that
// ran it has ended. It returns "" if the task may have ended otherwise. err is the answer of the
// upstream.
func lostReason(u *hub.Upstream, t sealedTask, err error) string {
	unknown, ok := errors.AsType[*mcp.Error](err)
	if !ok || unknown.Code != jsonrpc.CodeInvalidParams || t.Created.IsZero() {
		return ""
	}
	d, state := u.Definition(), u.State()
	if _, ok := sharedserver.Unwrap(d.Target).(stdio.Command); !ok {
		return ""
	}
	if d.Sharing == hub.SharePerClient || d.Sharing == hub.SharePerSession {
		return ""
	}
	if state.Status != hub.Ready || !state.Since.After(t.Created) {
		return ""
	}
	return "the process of the server " + u.Name() + " that ran the task has ended"
}

// cancelWithdrawn tells an upstream that the result of a task is no longer needed.
func (c *core) cancelWithdrawn(ctx context.Context, u *hub.Upstream, caller hub.Caller, req *mcp.Request) {
	ctx, cancel := context.WithTimeout(ctx, cancelTaskTimeout)
	defer cancel()
	if _, err := u.RoundTrip(ctx, caller, req); err != nil {
		c.opts.Logger.Debug("cannot cancel a task", "server", u.Name(), "err", err)
	}
}

// addTask remembers a task that has failed. If it is known already, addTask returns the known one.
func (f *failedTasks) addTask(principal, id string, task *mcpwire.Task) *mcpwire.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byID[id]; known != nil {
		return known
	}
	if f.byID == nil {
		f.byID = map[string]*mcpwire.Task{}
	}
	f.makeRoom(principal)
	f.byID[id] = task
	f.order = append(f.order, failedTask{principal, id})
	return task
}

// makeRoom forgets the oldest task of a principal at its limit, or of all at the limit of all. f.mu
// is held.
func (f *failedTasks) makeRoom(principal string) {
	isOwn := func(t failedTask) bool { return t.principal == principal }
	own, oldest := 0, slices.IndexFunc(f.order, isOwn)
	for _, t := range f.order {
		if isOwn(t) {
			own++
		}
	}
	switch {
	case own >= maxClientFailedTasks:
	case len(f.order) >= maxFailedTasks:
		oldest = 0
	default:
		return
	}
	delete(f.byID, f.order[oldest].id)
	f.order = slices.Delete(f.order, oldest, oldest+1)
}
