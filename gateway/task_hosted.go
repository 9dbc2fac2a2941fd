package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// hostedTaskTTL is how long the gateway keeps a task of its own, counted from its creation.
	hostedTaskTTL = time.Hour
	// hostedTaskPoll is the interval at which a client should ask for the state of such a task.
	hostedTaskPoll = time.Second
	// maxHostedTasks bounds the tasks of one principal that are kept.
	maxHostedTasks = 1000
)

var (
	errTaskCancelled = errors.New("the client has cancelled the task")
	errTaskExpired   = errors.New("the task has reached its time to live")
)

// hostedTask is a task of the gateway's own: a call of an upstream that goes on after the answer to its
// request. Its bridge holds the questions and the result.
type hostedTask struct {
	id, principal, tool string
	bridge              *bridge
	created             time.Time
	expiry              *time.Timer

	mu        sync.Mutex // guards the rest
	cancelled bool
	last      mcpwire.Task // the newest state that a client has seen
	updated   time.Time    // of last
}

// hostedTasks are the tasks of a gateway's own. They are lost with the process.
type hostedTasks struct {
	mu     sync.Mutex
	byID   map[string]*hostedTask
	counts map[string]int // by principal
	closed bool
}

// addTask makes a task of a call. It returns nil if the client has too many, or the gateway shuts down.
func (h *hostedTasks) addTask(b *bridge, principal, tool string) *hostedTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.counts[principal] >= maxHostedTasks {
		return nil
	}
	if h.byID == nil {
		h.byID, h.counts = map[string]*hostedTask{}, map[string]int{}
	}
	now := time.Now()
	t := &hostedTask{id: rand.Text(), principal: principal, tool: tool, bridge: b, created: now, updated: now}
	h.byID[t.id] = t
	h.counts[principal]++
	t.expiry = time.AfterFunc(hostedTaskTTL, func() { h.dropTask(t, errTaskExpired) })
	return t
}

// dropTask forgets a task, and cancels its call.
func (h *hostedTasks) dropTask(t *hostedTask, why error) {
	h.mu.Lock()
	delete(h.byID, t.id)
	if h.counts[t.principal]--; h.counts[t.principal] == 0 {
		delete(h.counts, t.principal)
	}
	h.mu.Unlock()
	t.bridge.drop(why)
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

// closeAll cancels the calls of all tasks, and refuses new ones.
func (h *hostedTasks) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, t := range h.byID {
		t.expiry.Stop()
		t.bridge.drop(errors.New("the gateway is shutting down"))
	}
	clear(h.byID)
}

// hostCall makes a task of the bridge's call and returns the result that says so; nil if it cannot.
func (b *bridge) hostCall() (*mcp.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isAnswered {
		return nil, nil
	}
	t := b.core.hosted.addTask(b, b.request.Principal.ID, b.tool)
	if t == nil {
		return nil, nil
	}
	b.isHosted = true
	b.request, b.requestCtx = nil, nil
	raw, err := mcp.Encode(t.describeCreated())
	return &mcp.Result{Type: mcpwire.ResultTask, Raw: raw}, err
}

// answersClient decides whether the first answer of the upstream, a question or a task, goes to the
// client. Otherwise the call is a task, or the gateway deals with the answer.
func (b *bridge) answersClient() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isAnswered = b.passesRounds && !b.isHosted
	return b.isAnswered
}

// becameTask reports whether the call is a task of the gateway's own.
func (b *bridge) becameTask() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isHosted
}

// describeCreated returns the task without its state.
func (t *hostedTask) describeCreated() *mcpwire.Task {
	ttl := hostedTaskTTL.Milliseconds()
	at := t.created.UTC().Format(mcpwire.TaskTimeFormat)
	return &mcpwire.Task{
		TaskID: t.id, Status: mcpwire.TaskWorking, CreatedAt: at, LastUpdatedAt: at, TTLMs: &ttl, PollIntervalMs: hostedTaskPoll.Milliseconds(),
	}
}

// describeTask returns the task with its state.
func (t *hostedTask) describeTask(ctx context.Context) *mcpwire.Task {
	task := t.describeCreated()
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.bridge.done:
		t.describeEnd(ctx, task)
	default:
		task.InputRequests, task.StatusMessage = t.bridge.openQuestions()
		if len(task.InputRequests) > 0 {
			task.Status = mcpwire.TaskInputRequired
		}
	}
	if t.cancelled {
		*task = *t.describeCreated()
		task.Status, task.StatusMessage = mcpwire.TaskCancelled, "cancelled by the client"
	}
	if task.Status != t.last.Status && t.last.Status != "" || task.StatusMessage != t.last.StatusMessage {
		t.updated = time.Now()
	}
	t.last = *task
	task.LastUpdatedAt = t.updated.UTC().Format(mcpwire.TaskTimeFormat)
	return task
}

// describeEnd adds the result or the error of a call that has ended.
func (t *hostedTask) describeEnd(ctx context.Context, task *mcpwire.Task) {
	res, err := clientResult(t.bridge.peekResult())
	if why := describeFailure(ctx, t.bridge.upstream, err); why != "" {
		res, err = failedResult(why), nil
	}
	if err == nil && res.Type != "" {
		err = mcp.Errorf(jsonrpc.CodeInternal, "the server asks for something that a task cannot ask for")
	}
	if err == nil {
		var raw json.RawMessage
		if raw, err = mcpwire.EncodeResult(res); err == nil {
			task.Status, task.Result = mcpwire.TaskCompleted, rawjson.Set(raw, "resultType", []byte(`"`+mcp.ResultComplete+`"`))
			return
		}
	}
	e, ok := errors.AsType[*mcp.Error](err)
	if !ok {
		e = mcp.Errorf(jsonrpc.CodeInternal, "%s", err)
	}
	task.Status, task.StatusMessage, task.Error = mcpwire.TaskFailed, e.Message, mcpwire.EncodeTaskError(e)
}

// cancelTask ends the call of a task that has not ended.
func (t *hostedTask) cancelTask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.bridge.done:
	default:
		t.cancelled = true
		t.bridge.cancel(errTaskCancelled)
	}
}

// serveHosted answers tasks/get, tasks/update and tasks/cancel about a task of the gateway's own.
func (g *Gateway) serveHosted(ctx context.Context, req *mcp.Request, t *hostedTask) (*mcp.Result, error) {
	switch req.Method {
	case mcpwire.MethodCancelTask:
		t.cancelTask()
		return &mcp.Result{}, nil
	case mcpwire.MethodUpdateTask:
		answers := rawjson.Lookup(req.Params, "inputResponses")
		if !rawjson.IsObject(answers) {
			return nil, mcp.InvalidParams("%s needs params.inputResponses, an object", req.Method)
		}
		t.bridge.takeAnswers(answers)
		return &mcp.Result{}, nil
	}
	raw, err := mcp.Encode(t.describeTask(ctx))
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Raw: g.showTask(t.bridge.upstream, raw, t.id)}, nil
}
