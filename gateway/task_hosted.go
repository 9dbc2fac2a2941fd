package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// hostedTaskTTL is how long the gateway keeps a task of its own, counted from its creation.
	hostedTaskTTL = time.Hour
	// hostedTaskPoll is the interval at which a client should ask for the state of such a task.
	hostedTaskPoll = time.Second
)

// hostedTask is a task of the gateway's own: a call of an upstream that continues after the answer
// to its request. Its bridge holds the questions and the result.
type hostedTask struct {
	id, principal, tool string
	bridge              *bridge
	created             time.Time
	expiry              *time.Timer
	followers           taskWakers

	mu        sync.Mutex // guards the rest
	cancelled bool
	failure   *mcp.Error   // the gateway has failed the task; nil if it has not
	last      mcpwire.Task // the newest state that a client has seen
	isStored  bool         // the store has the end of the task
	updated   time.Time    // of last
}

// hostCall makes a task of the bridge's call and returns the result that says so; nil if it cannot.
func (b *bridge) hostCall() (*mcp.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.done:
		return nil, nil
	default:
	}
	if b.isAnswered || !mayGetTask(b.request) { // the first request of the call may have said otherwise
		return nil, nil
	}
	t := b.core.hosted.addTask(b, b.request.Principal.ID, b.tool)
	if t == nil {
		return nil, nil
	}
	b.hosted = t
	b.request, b.requestCtx = nil, nil
	raw, err := mcp.Encode(t.describeCreated())
	return &mcp.Result{Type: mcpwire.ResultTask, Raw: raw}, err
}

// hostedTask returns the task of the gateway's own that the call has become, or nil.
func (b *bridge) hostedTask() *hostedTask {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosted
}

// answersClient decides whether the first answer of the upstream, a question or a task, goes to the
// client. Otherwise the call is a task, or the gateway deals with the answer.
func (b *bridge) answersClient() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isAnswered = b.passesRounds && b.hosted == nil
	return b.isAnswered
}

// describeCreated returns the task without its state.
func (t *hostedTask) describeCreated() *mcpwire.Task {
	ttl := hostedTaskTTL.Milliseconds()
	at := t.created.UTC().Format(mcpwire.TaskTimeFormat)
	return &mcpwire.Task{
		TaskID: t.id, Status: mcpwire.TaskWorking, CreatedAt: at, LastUpdatedAt: at, TTLMs: &ttl, PollIntervalMs: hostedTaskPoll.Milliseconds(),
	}
}

// describeTask returns the task with its state. After the end it reads the task from the store, and
// returns an error while the store cannot be read.
func (t *hostedTask) describeTask(ctx context.Context) (*mcpwire.Task, error) {
	ctx = context.WithoutCancel(ctx) // the end of a task does not depend on the request that sees it first
	task := t.describeCreated()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isStored { // another replica may have stored another end than the call's
		return t.loadEnd(ctx)
	}
	select {
	case <-t.bridge.done:
		t.describeEnd(ctx, task)
	default:
		task.InputRequests, task.StatusMessage = t.bridge.openQuestions()
		if len(task.InputRequests) > 0 {
			task.Status = mcpwire.TaskInputRequired
		}
	}
	switch {
	case t.cancelled:
		*task = *t.describeCreated()
		task.Status, task.StatusMessage = mcpwire.TaskCancelled, "cancelled by the client"
	case t.failure != nil:
		*task = *t.describeCreated()
		describeTaskFailure(task, t.failure)
	}
	if task.HasEnded() {
		t.keepEnd(ctx, task)
	}
	if t.hasChanged(task) {
		t.updated = time.Now()
	}
	t.last = *task
	task.LastUpdatedAt = t.updated.UTC().Format(mcpwire.TaskTimeFormat)
	return task, nil
}

// hasChanged reports whether the state differs from the one that a client has seen last. A client
// has seen a new task as working. t.mu is held.
func (t *hostedTask) hasChanged(state *mcpwire.Task) bool {
	isSame := func(mcp.InputRequest, mcp.InputRequest) bool { return true } // each question has a key of its own
	return state.Status != cmp.Or(t.last.Status, mcpwire.TaskWorking) || state.StatusMessage != t.last.StatusMessage ||
		!maps.EqualFunc(state.InputRequests, t.last.InputRequests, isSame)
}

// loadEnd returns the end of the task from the store.
func (t *hostedTask) loadEnd(ctx context.Context) (*mcpwire.Task, error) {
	r, err := t.bridge.core.hosted.loadTask(ctx, t.principal, t.id)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, errUnknownTask // expired
	}
	return mcpwire.DescribeTaskFully(r), nil
}

// keepEnd stores the end of a task. A task whose end cannot be stored now stays working. A result
// that is too large for the store fails the task. t.mu is held.
func (t *hostedTask) keepEnd(ctx context.Context, task *mcpwire.Task) {
	err := t.storeEnd(ctx, task)
	if errors.Is(err, tasks.ErrTooLarge) {
		t.failure = mcp.Errorf(jsonrpc.CodeInternal, "the result of the task is lost: %v", err)
		*task = *t.describeCreated()
		describeTaskFailure(task, t.failure)
		err = t.storeEnd(ctx, task)
	}
	if err != nil {
		*task = *t.describeCreated()
		task.StatusMessage = "the task has ended, but its end cannot be stored yet"
	}
}

// describeEnd adds the result or the error of a call that has ended.
func (t *hostedTask) describeEnd(ctx context.Context, task *mcpwire.Task) {
	res, err := clientResult(t.bridge.peekResult())
	if why := describeFailure(ctx, t.bridge.upstream, err); why != "" {
		err = mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
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
	describeTaskFailure(task, protocolError(err))
}

// protocolError returns the error with which a call is answered.
func protocolError(err error) *mcp.Error {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*mcp.CapabilityError](err); ok {
		missing := mcpwire.MissingCapability(e)
		missing.Message = e.Error()
		return missing
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "%s", err)
}

// describeTaskFailure makes a task one that has failed with an error.
func describeTaskFailure(task *mcpwire.Task, e *mcp.Error) {
	task.Status, task.StatusMessage, task.Error = mcpwire.TaskFailed, e.Message, mcpwire.EncodeTaskError(e)
}

// cancelTask ends the call of a task that has not ended.
func (t *hostedTask) cancelTask() {
	t.endTask(errTaskCancelled, func() { t.cancelled = true })
}

// failTask ends a task that has not ended, with an error.
func (t *hostedTask) failTask(e *mcp.Error) {
	t.endTask(e, func() { t.failure = e })
}

// endTask ends the call of a task that has not ended. note notes why.
func (t *hostedTask) endTask(cause error, note func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.bridge.done:
		return
	default:
	}
	if !t.cancelled && t.failure == nil {
		note()
		t.bridge.cancel(cause)
	}
}

// noteChange wakes the subscriptions that follow the task. It does nothing for a nil task.
func (t *hostedTask) noteChange() {
	if t != nil {
		t.followers.wakeAll()
	}
}

// followTask passes the state of the task to send now and after each change, until the task has
// ended or ctx ends. Changes that follow each other quickly are passed as one. While the state
// cannot be read, or the end cannot be stored, it asks again.
func (t *hostedTask) followTask(ctx context.Context, send func(*mcpwire.Task)) {
	wake := t.followers.addWaker()
	defer t.followers.removeWaker(wake)
	for isRetry := false; ctx.Err() == nil; {
		task, err := t.describeTask(ctx)
		if t.bridge.hasForgotten() || errors.Is(err, errUnknownTask) {
			return
		}
		if err != nil {
			_ = timeout.Sleep(ctx, hostedTaskPoll) // fails if ctx has ended
			continue
		}
		if !isRetry || task.HasEnded() {
			send(task)
		}
		if task.HasEnded() {
			return
		}
		if isRetry = t.hasUnstoredEnd(); isRetry {
			_ = timeout.Sleep(ctx, hostedTaskPoll) // nothing wakes it when the store is there again
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
		_ = timeout.Sleep(ctx, gatherTime) // fails if ctx has ended
	}
}

// hasUnstoredEnd reports whether the call has ended and the store does not have the end yet.
func (t *hostedTask) hasUnstoredEnd() bool {
	select {
	case <-t.bridge.done:
	default:
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.isStored && !t.last.HasEnded()
}

// showsResults reports whether the client of a request sees the results in the states of tasks.
// Clients of 2025-11-25 see them in the answer to tasks/result only, which the transport makes of
// the state.
func showsResults(req *mcp.Request) bool { return req.Revision != mcp.Revision20251125 }

// serveHosted answers tasks/get, tasks/update and tasks/cancel about a task of the gateway's own.
func (g *Gateway) serveHosted(ctx context.Context, req *mcp.Request, t *hostedTask) (*mcp.Result, error) {
	switch req.Method {
	case mcpwire.MethodCancelTask:
		t.cancelTask()
		_, _ = t.describeTask(ctx) // stores the end before it is acknowledged
		return &mcp.Result{}, nil
	case mcpwire.MethodUpdateTask:
		answers := rawjson.Lookup(req.Params, "inputResponses")
		if !rawjson.IsObject(answers) {
			return nil, mcp.InvalidParams("%s needs params.inputResponses, an object", req.Method)
		}
		t.bridge.takeAnswers(answers)
		t.noteChange()
		return &mcp.Result{}, nil
	}
	if err := t.readEnd(ctx); err != nil {
		return nil, err
	}
	task, unread := t.describeTask(ctx)
	if t.bridge.hasForgotten() {
		r, err := g.hosted.loadTask(ctx, t.principal, t.id)
		if r != nil {
			return g.serveStored(ctx, req, r)
		}
		return nil, cmp.Or[error](err, errUnknownTask)
	}
	if unread != nil {
		return nil, unread
	}
	if task.Result != nil {
		t.bridge.noteShown(showsResults(req))
	}
	raw, err := mcp.Encode(task)
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Raw: g.showTask(t.bridge.upstream, raw, t.id)}, nil
}
