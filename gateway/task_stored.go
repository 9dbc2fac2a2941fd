package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// A store has two versions of each task that the gateway hosts. The first says that the task works,
// and is stored before the client gets the task's id. The second is the end, and is stored before a
// client sees the end. So an end that a client has seen is the same in another process.

// taskSpace marks the records of gateways in a store.
const taskSpace = "gateway"

// storedCall is the content of the params of a record with taskSpace.
type storedCall struct {
	Upstream string `json:"upstream"`
	Instance string `json:"instance,omitzero"` // of the gateway that runs the task, for other replicas
}

// prepareStore returns an error if the store keeps no new task now.
func (h *hostedTasks) prepareStore() error {
	if h.core.opts.Tasks == nil {
		return nil
	}
	return h.core.opts.Tasks.Prepare()
}

// storeNew stores a new task as working. The store does not limit the number of tasks, because this
// process has reserved room for the call: the tasks of earlier processes must not refuse it.
func (h *hostedTasks) storeNew(t *hostedTask) error {
	if h.core.opts.Tasks == nil {
		return nil
	}
	params, err := mcp.Encode(storedCall{t.bridge.upstream.Name(), h.core.parked.replicas.instance})
	if err != nil {
		return err
	}
	return h.core.opts.Tasks.Create(context.WithoutCancel(t.bridge.ctx), &tasks.Record{
		ID: t.id, Owner: t.principal, Space: taskSpace, Tool: t.tool, Params: params, Status: tasks.Working,
		Created: t.created, Updated: t.created, TTL: hostedTaskTTL, Poll: hostedTaskPoll,
	}, 0)
}

// storeEnd stores the end of a task. t.mu is held.
func (t *hostedTask) storeEnd(ctx context.Context, task *mcpwire.Task) error {
	c := t.bridge.core
	if t.isStored || c.opts.Tasks == nil {
		return nil
	}
	r, isOwn, err := tasks.Update(ctx, c.opts.Tasks, t.id, func(next *tasks.Record) bool {
		next.Status, next.Message, next.Updated = tasks.Status(task.Status), task.StatusMessage, time.Now()
		next.Result, next.Error = task.Result, task.Error
		return true
	})
	if err == nil && !isOwn { // another replica has ended it, or the acknowledgement of a former try is missing
		*task = *mcpwire.DescribeTaskFully(r)
	}
	if err == nil || errors.Is(err, tasks.ErrUnknown) { // unknown means expired
		t.isStored = true
		return nil
	}
	c.opts.Logger.Error("the end of a task cannot be stored", "server", t.bridge.upstream.Name(), "tool", t.tool, "err", err)
	return err
}

// loadTask returns a principal's task of an earlier process or another replica, which has ended, or
// nil. An error means that the store may have the task.
func (h *hostedTasks) loadTask(ctx context.Context, principal, id string) (*tasks.Record, error) {
	r, err := h.findRecord(ctx, principal, id)
	if r == nil || !r.Status.IsTerminal() {
		return nil, err
	}
	return r, nil
}

// findRecord is loadTask, and returns tasks that another replica runs, too. A task that worked when
// its process ended has failed.
func (h *hostedTasks) findRecord(ctx context.Context, principal, id string) (*tasks.Record, error) {
	store := h.core.opts.Tasks
	if store == nil {
		return nil, nil
	}
	r, err := store.Load(ctx, id)
	if err == nil && (r.Space != taskSpace || r.Owner != principal) {
		return nil, nil
	}
	if err == nil && !r.Status.IsTerminal() && store.IsGone(r.Runner) {
		r, _, err = tasks.Update(ctx, store, id, func(next *tasks.Record) bool {
			lost := mcp.Errorf(jsonrpc.CodeInternal, "the dowel that ran the call has ended, and it is not known how far the call came")
			next.Status, next.Message, next.Updated, next.Error = tasks.Failed, lost.Message, time.Now(), mcpwire.EncodeTaskError(lost)
			return true
		})
	}
	switch {
	case errors.Is(err, tasks.ErrUnknown):
		return nil, nil
	case err != nil:
		h.core.opts.Logger.ErrorContext(ctx, "a task cannot be read or stored", "err", err)
		return nil, errTaskUnavailable
	case !r.Status.IsTerminal() && r.Runner == store.Runner():
		return nil, nil
	}
	return r, nil
}

// errTaskUnavailable is not the error for an unknown task, because a client forgets that one.
var errTaskUnavailable = mcp.Errorf(jsonrpc.CodeInternal, "the state of the task cannot be read at the moment: ask again later")

// readStoredCall returns the call of a stored task.
func readStoredCall(r *tasks.Record) (call storedCall) {
	_ = mcp.Decode(r.Params, &call) // the gateway has encoded it
	return call
}

// storedUpstream returns the name of the upstream of a stored task.
func storedUpstream(r *tasks.Record) string { return readStoredCall(r).Upstream }

// serveStored answers a request about a task of an earlier process.
func (g *Gateway) serveStored(ctx context.Context, req *mcp.Request, r *tasks.Record) (*mcp.Result, error) {
	upstream := storedUpstream(r)
	audit.SetTarget(ctx, audit.Target{Server: upstream, Name: r.Tool})
	if err := g.checkScopes(ctx, upstream, req); err != nil {
		return nil, err
	}
	if req.Method != mcpwire.MethodGetTask {
		return &mcp.Result{}, nil
	}
	raw, err := g.encodeStored(r)
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Raw: raw}, nil
}

// encodeStored returns the state of a stored task as clients see it.
func (g *Gateway) encodeStored(r *tasks.Record) (json.RawMessage, error) {
	raw, err := mcp.Encode(mcpwire.DescribeTaskFully(r))
	if u := g.hub.Upstream(storedUpstream(r)); err == nil && u != nil {
		raw = g.showTask(u, raw, r.ID)
	}
	return raw, err
}

// showStored tells the client the ends of tasks of an earlier process, and returns their ids.
func (s *subscription) showStored(ctx context.Context) (ids []string) {
	for _, r := range s.stored {
		if s.gateway.checkScopes(ctx, storedUpstream(r.Record), s.req) != nil {
			continue
		}
		ids = append(ids, r.shown)
		s.work.Go(func() {
			raw, err := s.gateway.encodeStored(r.Record)
			if err == nil && s.awaitAcknowledgement(ctx) {
				s.sendChange(ctx, mcp.Notification{Method: mcpwire.NotificationTask, Params: showTaskAs(raw, r.shown)})
			}
		})
	}
	return ids
}
