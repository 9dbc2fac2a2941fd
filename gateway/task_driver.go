package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// defaultTaskPoll is the interval between two polls of an upstream's task if the upstream has
	// no preference, and shortestTaskPoll is the shortest one.
	defaultTaskPoll  = time.Second
	shortestTaskPoll = 20 * time.Millisecond
	// cancelTaskTimeout bounds the request that cancels the task of a call that has ended.
	cancelTaskTimeout = 5 * time.Second
)

// taskDriver makes a call of a tool at an upstream. If the upstream makes a task of the call, the
// driver waits for it: the client need not know tasks.
type taskDriver struct {
	bridge *bridge // answers the questions, and gets the status messages
	call   *mcp.Request
}

// newTaskDriver returns the driver of a call that may need one, or nil. The upstream may make a
// task of the call.
func newTaskDriver(b *bridge, call *mcp.Request) *taskDriver {
	if call.Method != mcp.MethodCallTool || !b.answersAll && !hasTasks(b.upstream) {
		return nil
	}
	own := *call
	own.Params = bytes.Clone(call.Params) // the driver outlives the client's request
	own.ClientCapabilities = bytes.Clone(mcpwire.WithTasksCapability(call.ClientCapabilities))
	return &taskDriver{b, &own}
}

// makeCall makes the call and returns its result. It may be called again after an error.
func (d *taskDriver) makeCall(ctx context.Context) (*mcp.Response, error) {
	req := d.call
	for round := 0; ; round++ {
		resp, err := d.bridge.upstream.RoundTrip(ctx, d.bridge.caller, req)
		switch {
		case err != nil:
			return nil, err
		case resp.Type != mcp.ResultComplete && round == 0 && d.bridge.answersClient():
			return resp, nil
		case resp.Type == mcpwire.ResultTask:
			return d.awaitTask(ctx, resp.Raw)
		case resp.Type != mcp.ResultInputRequired || !d.bridge.answersAll:
			return resp, nil
		}
		if round == maxDriverRounds {
			return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s has asked for input %d times and returned no result", d.bridge.upstream.Name(), round)
		}
		answers, n, err := d.answerAll(ctx, rawjson.Lookup(resp.Raw, "inputRequests"), nil)
		if err == nil && n == 0 { // the server wants the call again, later
			err = timeout.Sleep(ctx, min(shortestTaskPoll<<min(round, 10), longestRetry))
		}
		if err != nil {
			return nil, err
		}
		next := *d.call
		next.Params = rawjson.Set(rawjson.Set(d.call.Params, "inputResponses", answers), "requestState", rawjson.Lookup(resp.Raw, "requestState"))
		req = &next
	}
}

// Bounds of calls that the upstream wants again.
const (
	maxDriverRounds = 100
	longestRetry    = 5 * time.Second
)

// awaitTask waits for the end of a task, and answers its questions. If that fails, or ctx ends, it
// cancels the task.
func (d *taskDriver) awaitTask(ctx context.Context, created json.RawMessage) (*mcp.Response, error) {
	task := new(mcpwire.Task)
	if err := mcp.Decode(created, task); err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s has answered with a task that cannot be read: %v", d.bridge.upstream.Name(), err)
	}
	if task.TaskID == "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s has answered with a task without an id", d.bridge.upstream.Name())
	}
	d.bridge.taskCreated()
	resp, isOver, err := d.pollUntilEnd(ctx, task)
	if err != nil && !isOver {
		d.cancelTask(ctx, task.TaskID)
	}
	return resp, err
}

// pollUntilEnd returns the result of a task. isOver reports whether the task has ended, or is
// unknown to the upstream.
func (d *taskDriver) pollUntilEnd(ctx context.Context, created *mcpwire.Task) (resp *mcp.Response, isOver bool, err error) {
	id, wait := created.TaskID, pollInterval(created)
	answered := map[string]bool{}
	for {
		if err := timeout.Sleep(ctx, wait); err != nil {
			return nil, false, err
		}
		resp, err := d.sendTaskRequest(ctx, mcpwire.MethodGetTask, id, nil)
		if err != nil {
			unknown, ok := errors.AsType[*mcp.Error](err)
			return nil, ok && unknown.Code == jsonrpc.CodeInvalidParams, err
		}
		task := new(mcpwire.Task)
		if err := mcp.Decode(resp.Raw, task); err != nil {
			return nil, false, err
		}
		d.bridge.noteMessage(task.StatusMessage)
		wait = pollInterval(task)
		switch task.Status {
		case mcpwire.TaskCompleted:
			return &mcp.Response{Type: mcp.ResultComplete, Raw: task.Result, Revision: resp.Revision}, true, nil
		case mcpwire.TaskFailed:
			return nil, true, mcpwire.TaskError(task)
		case mcpwire.TaskCancelled:
			return nil, true, mcp.Errorf(jsonrpc.CodeInternal, "the task was cancelled by the server %s", d.bridge.upstream.Name())
		case mcpwire.TaskInputRequired:
			if !resp.Revision.Modern() {
				resp, err := d.awaitResult(ctx, id) // the upstream asks live meanwhile
				_, isAnswer := errors.AsType[*mcp.Error](err)
				return resp, isAnswer && ctx.Err() == nil, err
			}
			answers, n, err := d.answerAll(ctx, rawjson.Lookup(resp.Raw, "inputRequests"), answered)
			if err == nil && n > 0 {
				_, err = d.sendTaskRequest(ctx, mcpwire.MethodUpdateTask, id, answers)
				wait = 0
			}
			if err != nil {
				return nil, false, err
			}
		}
	}
}

// pollInterval returns the wait before the next poll of a task.
func pollInterval(task *mcpwire.Task) time.Duration {
	if task.PollIntervalMs <= 0 {
		return defaultTaskPoll
	}
	return min(max(time.Duration(task.PollIntervalMs)*time.Millisecond, shortestTaskPoll), time.Minute)
}

// answerAll passes questions on to the client, all at once, and returns the answers and their
// number. It leaves out the questions with keys in answered, and adds the others to it: an upstream
// may show a question for a while after it was answered. A nil map leaves out none.
func (d *taskDriver) answerAll(ctx context.Context, questions json.RawMessage, answered map[string]bool) (raw json.RawMessage, n int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]json.RawMessage{}
	for it := rawjson.Object(questions); it.Next(); {
		key, q := string(it.Key), mcp.InputRequest{}
		if answered[key] {
			continue
		}
		if err := mcp.Decode(it.Value, &q); err != nil {
			cancel(err)
			break
		}
		if answered != nil {
			answered[key] = true
		}
		work.Go(func() {
			res, err := d.bridge.answerQuestion(ctx, &mcp.Request{Method: q.Method, Params: q.Params})
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[key] = res.Raw
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	raw, err = mcp.Encode(answers)
	return raw, len(answers), err
}

// awaitResult returns the result of a task of 2025-11-25 after its end. Meanwhile it passes the
// status messages on.
func (d *taskDriver) awaitResult(ctx context.Context, id string) (*mcp.Response, error) {
	return d.sendRequest(ctx, &mcp.Request{Method: mcpwire.MethodTaskResult, Params: mcpwire.TaskParams(id, nil), Notify: func(n mcp.Notification) {
		if n.Method == mcpwire.NotificationTaskStatus {
			message, _ := rawjson.String(rawjson.Lookup(n.Params, "statusMessage"))
			d.bridge.noteMessage(message)
		}
	}})
}

// sendTaskRequest sends a request about the task.
func (d *taskDriver) sendTaskRequest(ctx context.Context, method, id string, answers json.RawMessage) (*mcp.Response, error) {
	return d.sendRequest(ctx, &mcp.Request{Method: method, Params: mcpwire.TaskParams(id, answers)})
}

func (d *taskDriver) sendRequest(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	req.ClientCapabilities = d.call.ClientCapabilities
	return d.bridge.upstream.RoundTrip(ctx, d.bridge.caller, req)
}

// cancelTask tells the upstream that the result is no longer needed.
func (d *taskDriver) cancelTask(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTaskTimeout)
	defer cancel()
	if _, err := d.sendTaskRequest(ctx, mcpwire.MethodCancelTask, id, nil); err != nil {
		d.bridge.core.opts.Logger.Debug("cannot cancel a task", "server", d.bridge.upstream.Name(), "err", err)
	}
}

// hasTasks reports whether an upstream may make tasks of calls.
func hasTasks(u *hub.Upstream) bool {
	return u.Server().Capabilities.Extensions[mcpwire.ExtensionTasks] != nil
}
