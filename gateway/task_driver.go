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
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// defaultTaskPoll is the interval between two polls of an upstream's task if the upstream has no
	// preference, and shortestTaskPoll is the shortest one.
	defaultTaskPoll  = time.Second
	shortestTaskPoll = 20 * time.Millisecond
	// cancelTaskTimeout bounds the request that cancels the task of a call that has ended.
	cancelTaskTimeout = 5 * time.Second
)

// taskDriver makes a call of a tool at an upstream. If the upstream makes a task of the call, the driver
// waits for it: the client need not know tasks.
type taskDriver struct {
	bridge *bridge // answers the questions, and gets the status messages
	call   *mcp.Request
}

// newTaskDriver returns the driver of a call that may need one, or nil. The upstream may make a task of
// the call.
func newTaskDriver(b *bridge, call *mcp.Request) *taskDriver {
	if call.Method != mcp.MethodCallTool || !b.answersAll && !hasTasks(b.upstream) {
		return nil
	}
	own := *call
	own.Params = bytes.Clone(call.Params) // the driver outlives the client's request
	own.ClientCapabilities = bytes.Clone(mcpwire.WithTasksCapability(call.ClientCapabilities))
	return &taskDriver{b, &own}
}

// makeCall makes the call and returns its result.
func (d *taskDriver) makeCall(ctx context.Context) (*mcp.Response, error) {
	req := d.call
	for {
		resp, err := d.bridge.upstream.RoundTrip(ctx, d.bridge.caller, req)
		switch {
		case err != nil:
			return nil, err
		case resp.Type == mcpwire.ResultTask:
			return d.awaitTask(ctx, resp.Raw)
		case resp.Type != mcp.ResultInputRequired || !d.bridge.answersAll:
			return resp, nil
		}
		answers, err := d.answerAll(ctx, rawjson.Lookup(resp.Raw, "inputRequests"))
		if err != nil {
			return nil, err
		}
		next := *d.call
		next.Params = rawjson.Set(rawjson.Set(d.call.Params, "inputResponses", answers), "requestState", rawjson.Lookup(resp.Raw, "requestState"))
		req = &next
	}
}

// awaitTask waits for the end of a task, and answers its questions. If that fails, or ctx ends, it
// cancels the task.
func (d *taskDriver) awaitTask(ctx context.Context, created json.RawMessage) (*mcp.Response, error) {
	id, ok := rawjson.String(rawjson.Lookup(created, "taskId"))
	if !ok {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s has answered with a task without an id", d.bridge.upstream.Name())
	}
	d.bridge.taskCreated()
	resp, err := d.pollUntilEnd(ctx, id, created)
	if _, answered := errors.AsType[*mcp.Error](err); err != nil && (ctx.Err() != nil || !answered) {
		d.cancelTask(ctx, id)
	}
	return resp, err
}

func (d *taskDriver) pollUntilEnd(ctx context.Context, id string, created json.RawMessage) (*mcp.Response, error) {
	wait := readPoll(created)
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		resp, err := d.send(ctx, mcpwire.MethodGetTask, id, nil)
		if err != nil {
			return nil, err
		}
		task := new(mcpwire.Task)
		if err := mcp.Decode(resp.Raw, task); err != nil {
			return nil, err
		}
		d.bridge.noteMessage(task.StatusMessage)
		wait = readPoll(resp.Raw)
		switch task.Status {
		case "completed":
			return &mcp.Response{Type: mcp.ResultComplete, Raw: task.Result, Revision: resp.Revision}, nil
		case "failed":
			return nil, mcpwire.TaskError(task)
		case "cancelled":
			return nil, mcp.Errorf(jsonrpc.CodeInternal, "the task was cancelled by the server %s", d.bridge.upstream.Name())
		case "input_required":
			if !resp.Revision.Modern() {
				return d.send(ctx, mcpwire.MethodTaskResult, id, nil) // the upstream asks live meanwhile
			}
			answers, err := d.answerAll(ctx, rawjson.Lookup(resp.Raw, "inputRequests"))
			if err == nil {
				_, err = d.send(ctx, mcpwire.MethodUpdateTask, id, answers)
			}
			if err != nil {
				return nil, err
			}
			wait = 0
		}
	}
}

// readPoll returns the wait before the next poll of a task.
func readPoll(task json.RawMessage) time.Duration {
	var poll struct {
		Interval int64 `json:"pollIntervalMs"`
	}
	if mcp.Decode(task, &poll) != nil || poll.Interval <= 0 {
		return defaultTaskPoll
	}
	return min(max(time.Duration(poll.Interval)*time.Millisecond, shortestTaskPoll), time.Minute)
}

// answerAll passes questions on to the client, all at once, and returns the answers.
func (d *taskDriver) answerAll(ctx context.Context, questions json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]json.RawMessage{}
	for it := rawjson.Object(questions); it.Next(); {
		key, q := string(it.Key), mcp.InputRequest{}
		if err := mcp.Decode(it.Value, &q); err != nil {
			return nil, err
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
		return nil, context.Cause(ctx)
	}
	return mcp.Encode(answers)
}

// send sends a request about the task.
func (d *taskDriver) send(ctx context.Context, method, id string, answers json.RawMessage) (*mcp.Response, error) {
	params := rawjson.AppendString([]byte(`{"taskId":`), id)
	if answers != nil {
		params = append(append(params, `,"inputResponses":`...), answers...)
	}
	req := &mcp.Request{Method: method, Params: append(params, '}'), ClientCapabilities: d.call.ClientCapabilities}
	return d.bridge.upstream.RoundTrip(ctx, d.bridge.caller, req)
}

// cancelTask tells the upstream that the result is no longer needed.
func (d *taskDriver) cancelTask(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTaskTimeout)
	defer cancel()
	if _, err := d.send(ctx, mcpwire.MethodCancelTask, id, nil); err != nil {
		d.bridge.core.opts.Logger.Debug("cannot cancel a task", "server", d.bridge.upstream.Name(), "err", err)
	}
}

// hasTasks reports whether an upstream may make tasks of calls.
func hasTasks(u *hub.Upstream) bool {
	return u.Server().Capabilities.Extensions[mcpwire.ExtensionTasks] != nil
}
