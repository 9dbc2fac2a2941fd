package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// A task of the gateway's own is a live call of one replica. Another replica passes requests about
// it on to the instance that the record names. When a task has ended, every replica reads its end
// from the store. If the replica is gone, the next request fails the task.

// handleTask answers the request of another replica about a task that this one runs.
func (r *replicaCalls) handleTask(ctx context.Context, m replicaMessage) ([]byte, error) {
	id, _ := rawjson.String(rawjson.Lookup(m.Params, "taskId"))
	t := r.core.hosted.findTask(m.Principal.ID, id)
	if t == nil {
		return nil, nil // it has ended, or this replica is about to
	}
	switch m.Method {
	case mcpwire.MethodCancelTask:
		t.cancelTask()
	case mcpwire.MethodUpdateTask:
		t.bridge.takeAnswers(rawjson.Lookup(m.Params, "inputResponses"))
		t.noteChange()
	}
	if err := t.readEnd(ctx); err != nil {
		return nil, err
	}
	task, err := t.describeTask(ctx)
	if t.bridge.hasForgotten() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if task.Result != nil {
		t.bridge.noteShown(m.Revision != mcp.Revision20251125)
	}
	return mcp.Encode(task)
}

// readEnd takes over the end of a task that another replica has stored, because it took this one
// for gone. It returns an error if that is not known. Without replicas, it does nothing.
func (t *hostedTask) readEnd(ctx context.Context) error {
	c := t.bridge.core
	if c.opts.Tasks == nil || c.parked.replicas.network == nil {
		return nil
	}
	r, err := c.opts.Tasks.Load(ctx, t.id)
	switch {
	case errors.Is(err, tasks.ErrUnknown):
		return nil // expired
	case err != nil:
		return errTaskUnavailable
	case r.Status.IsTerminal():
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.isStored {
			t.isStored = true
			t.bridge.cancel(errTakenForGone)
		}
	}
	return nil
}

var errTakenForGone = errors.New("the other replicas have taken this one for gone, and failed the task")

// askOwner asks the replica that runs a task, and returns the state of the task. After the replica
// is gone, it returns the end that is stored, or the state that was stored last.
func (g *Gateway) askOwner(ctx context.Context, req *mcp.Request, r *tasks.Record) (state json.RawMessage, err error) {
	calls := &g.parked.replicas
	if calls.network == nil {
		return nil, errUnknownTask
	}
	state, err = calls.ask(ctx, readStoredCall(r).Instance, replicaMessage{Kind: taskRequest, Method: req.Method, Params: req.Params, Revision: req.Revision, Principal: req.Principal})
	if err == nil && len(state) > 0 {
		return state, nil
	}
	ended, loading := g.hosted.findRecord(ctx, r.Owner, r.ID) // the replica may have ended it, or has itself ended
	switch {
	case loading != nil:
		return nil, loading
	case ended == nil:
		return nil, errUnknownTask
	case ended.Status.IsTerminal():
		return g.encodeRecord(ended)
	case req.Method == mcpwire.MethodGetTask && (err == nil || errors.Is(err, replica.ErrGone)):
		return g.encodeRecord(ended) // it fails when the lease of the replica has ended
	case req.Method == mcpwire.MethodCancelTask && errors.Is(err, replica.ErrGone):
		return g.cancelOrphan(ctx, ended)
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s: the replica that runs the task does not answer: ask again later", req.Method)
}

// cancelOrphan cancels a task whose replica does not hear it.
func (g *Gateway) cancelOrphan(ctx context.Context, r *tasks.Record) (json.RawMessage, error) {
	r, _, err := tasks.Update(ctx, g.opts.Tasks, r.ID, func(next *tasks.Record) bool {
		next.Status, next.Message, next.Updated = tasks.Cancelled, "cancelled by the client", time.Now()
		return true
	})
	if err != nil {
		return nil, errTaskUnavailable
	}
	return g.encodeRecord(r)
}

func (g *Gateway) encodeRecord(r *tasks.Record) (json.RawMessage, error) {
	return mcp.Encode(mcpwire.DescribeTaskFully(r))
}

// serveRemote answers a request about a task that another replica runs.
func (g *Gateway) serveRemote(ctx context.Context, req *mcp.Request, r *tasks.Record) (*mcp.Result, error) {
	upstream := storedUpstream(r)
	audit.SetTarget(ctx, audit.Target{Server: upstream, Name: r.Tool})
	if err := g.checkScopes(ctx, upstream, req); err != nil {
		return nil, err
	}
	if req.Method == mcpwire.MethodUpdateTask && !rawjson.IsObject(rawjson.Lookup(req.Params, "inputResponses")) {
		return nil, mcp.InvalidParams("%s needs params.inputResponses, an object", req.Method)
	}
	state, err := g.askOwner(ctx, req, r)
	if err != nil {
		return nil, err
	}
	if req.Method != mcpwire.MethodGetTask {
		return &mcp.Result{}, nil
	}
	return &mcp.Result{Raw: g.showRemote(r, state)}, nil
}

// showRemote returns the state of a task as clients see it.
func (g *Gateway) showRemote(r *tasks.Record, state json.RawMessage) json.RawMessage {
	if u := g.hub.Upstream(storedUpstream(r)); u != nil {
		return g.showTask(u, state, r.ID)
	}
	return state
}

// followRemote follows the tasks that other replicas run, and returns their ids.
func (s *subscription) followRemote(ctx context.Context) (ids []string) {
	for _, r := range s.remote {
		if s.gateway.checkScopes(ctx, storedUpstream(r.Record), s.req) != nil {
			continue
		}
		ids = append(ids, r.shown)
		s.work.Go(func() {
			if s.awaitAcknowledgement(ctx) {
				s.pollRemote(ctx, r)
			}
		})
	}
	return ids
}

// pollRemote tells the client each new state of a task that another replica runs, until its end.
func (s *subscription) pollRemote(ctx context.Context, r followedRecord) {
	params, err := mcp.Encode(map[string]string{"taskId": r.ID})
	if err != nil {
		return
	}
	req := &mcp.Request{Method: mcpwire.MethodGetTask, Params: params, Revision: s.req.Revision, Principal: s.req.Principal}
	for order := new(stateOrder); ; {
		state, err := s.gateway.askOwner(ctx, req, r.Record)
		if errors.Is(err, errUnknownTask) {
			return // it has expired
		}
		if err == nil && order.isNews(state) {
			s.sendChange(ctx, mcp.Notification{Method: mcpwire.NotificationTask, Params: showTaskAs(s.gateway.showRemote(r.Record, state), r.shown)})
		}
		if err == nil && hasEnded(state) || timeout.Sleep(ctx, hostedTaskPoll) != nil {
			return
		}
	}
}

// stateOrder lets each state of a task pass once, and no state that is older than another one.
// While the replica that runs a task cannot be reached, the state comes from the store, and is
// older.
type stateOrder struct {
	last    string
	updated string // lastUpdatedAt of last; such times are ordered as texts
}

func (o *stateOrder) isNews(state json.RawMessage) bool {
	updated, _ := rawjson.String(rawjson.Lookup(state, "lastUpdatedAt"))
	if string(state) == o.last || updated < o.updated && !hasEnded(state) {
		return false
	}
	o.last, o.updated = string(state), updated
	return true
}
