package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Task is a handle of a task, a call of a tool that continues at the server after its request was
// answered. [Call] and [Client.CallTool] wait for tasks themselves; [Client.StartTool] returns a
// handle instead. The task outlives the client: keep its ID, and [Client.Resume] it later.
type Task struct {
	client *Client
	id     string
}

// TaskState is the state of a task.
type TaskState struct {
	// Status is working, input_required, completed, failed or cancelled. The last three are final.
	Status string
	// Message describes the state in words, such as the progress of the work.
	Message          string
	Created, Updated time.Time
	// TTL is how long the server keeps the task, counted from Created. 0 means without a limit.
	TTL time.Duration
	// Poll is the interval at which the server wants to be asked. 0 means that it
	// has no preference.
	Poll time.Duration
	// Questions are the open questions, by their keys. Questions that were answered are not among
	// them.
	Questions map[string]mcp.InputRequest
	// Result is the result of a completed task, which may be a failure of the tool.
	Result *mcp.CallToolResult
	// Err is the error of a failed task.
	Err error
}

// ErrTaskCancelled reports that a task was cancelled.
var ErrTaskCancelled = errors.New("the task was cancelled")

// StartTool calls a tool and does not wait for its task. If the server does all work within the
// call, task is nil and result is the result of the tool, also with an [*OutputError]. Otherwise
// result is nil.
func (c *Client) StartTool(ctx context.Context, params mcp.CallToolParams, opts ...CallOptions) (task *Task, result *mcp.CallToolResult, err error) {
	task, result, err = c.startTool(ctx, params, options.Merge(opts))
	if _, isOutput := errors.AsType[*OutputError](err); err != nil && !isOutput {
		err = c.callError(mcp.MethodCallTool, params.Name, err)
	}
	return task, result, err
}

func (c *Client) startTool(ctx context.Context, params mcp.CallToolParams, o CallOptions) (*Task, *mcp.CallToolResult, error) {
	if err := c.checkDeclared(mcp.MethodCallTool); err != nil {
		return nil, nil, err
	}
	raw, err := mcp.Encode(&params)
	if err == nil {
		raw, err = addMeta(raw, o.Meta)
	}
	if err != nil {
		return nil, nil, err
	}
	limitProgress(&o)
	if s := c.conn.server.Load(); s != nil && !s.Revision.Modern() && c.handlesTasks(mcp.MethodCallTool) {
		raw = rawjson.Set(raw, "task", []byte("{}")) // asks for a task of 2025-11-25
	}
	ctx, k := c.startClock(ctx, mcp.MethodCallTool, &o)
	defer c.stopClock(k)
	resp, _, err := c.exchangeRounds(ctx, mcp.MethodCallTool, raw, &o, k)
	if err != nil {
		return nil, nil, err
	}
	if resp.Type == mcpwire.ResultTask {
		created, err := readTask(resp.Raw)
		if err != nil {
			return nil, nil, err
		}
		return c.Resume(created.TaskID), nil, nil
	}
	result, err := readToolResult(resp)
	if err == nil && !result.IsError {
		err = c.checkOutput(params.Name, parseOutput(resp.Raw))
	}
	return nil, result, err
}

func readToolResult(resp *mcp.Response) (*mcp.CallToolResult, error) {
	if err := requireComplete(resp); err != nil {
		return nil, err
	}
	result := new(mcp.CallToolResult)
	return result, readable(mcp.Decode(resp.Raw, result))
}

// Resume returns a handle of a task by its ID, as [Task.ID] has returned it to this client or to an
// earlier one with the same credentials. It sends nothing.
func (c *Client) Resume(id string) *Task { return &Task{c, id} }

// ID returns the server's identifier of the task. Treat it as a secret: with some servers it is all
// that is needed to see the task.
func (t *Task) ID() string { return t.id }

// State asks the server for the state of the task.
func (t *Task) State(ctx context.Context, opts ...CallOptions) (*TaskState, error) {
	o := options.Merge(opts)
	ctx, k := t.client.startClock(ctx, mcpwire.MethodGetTask, &o)
	defer t.client.stopClock(k)
	_, task, err := t.client.getTask(ctx, t.id, &o, k)
	if err != nil {
		return nil, t.client.callError(mcpwire.MethodGetTask, t.id, err)
	}
	state, err := describeTask(task)
	if err != nil {
		return nil, t.client.callError(mcpwire.MethodGetTask, t.id, unreadable(err))
	}
	return state, nil
}

// Wait waits until the task has ended. The client answers the task's questions like the questions
// of a call. Wait returns the result of the tool, which may be a failure of the tool. The error is
// [ErrTaskCancelled] if the task was cancelled. If ctx ends first, the task continues.
func (t *Task) Wait(ctx context.Context, opts ...CallOptions) (*mcp.CallToolResult, error) {
	o := options.Merge(opts)
	highest := limitProgress(&o)
	ctx, k := t.client.startClock(ctx, mcpwire.MethodGetTask, &o)
	defer t.client.stopClock(k)
	w := t.client.newTaskWait(t.id, &o, k, highest)
	resp, isOver, err := w.pollUntilEnd(ctx)
	if err != nil {
		if isOver {
			err = &mcpwire.TaskEndError{Err: err}
		}
		return nil, t.client.callError(mcpwire.MethodGetTask, t.id, err)
	}
	result, err := readToolResult(resp)
	if err != nil {
		return nil, t.client.callError(mcpwire.MethodGetTask, t.id, &mcpwire.TaskEndError{Err: err})
	}
	return result, nil
}

// Answer answers open questions of the task: each value is the result of the question with the key,
// such as {"action":"accept","content":{}}. The server ignores keys that are not open. Not all
// questions need an answer at once.
func (t *Task) Answer(ctx context.Context, answers map[string]json.RawMessage, opts ...CallOptions) error {
	raw, err := mcp.Encode(answers)
	if err == nil {
		err = t.sendTaskRequest(ctx, mcpwire.MethodUpdateTask, raw, options.Merge(opts))
	}
	if err != nil {
		return t.client.callError(mcpwire.MethodUpdateTask, t.id, err)
	}
	return nil
}

// Cancel tells the server that the result is no longer needed. The server may end the task later,
// or complete it all the same.
func (t *Task) Cancel(ctx context.Context, opts ...CallOptions) error {
	if err := t.sendTaskRequest(ctx, mcpwire.MethodCancelTask, nil, options.Merge(opts)); err != nil {
		return t.client.callError(mcpwire.MethodCancelTask, t.id, err)
	}
	return nil
}

// sendTaskRequest sends tasks/update or tasks/cancel.
func (t *Task) sendTaskRequest(ctx context.Context, method string, responses json.RawMessage, o CallOptions) error {
	ctx, k := t.client.startClock(ctx, method, &o)
	defer t.client.stopClock(k)
	_, err := t.client.sendTaskRequest(ctx, method, mcpwire.TaskParams(t.id, responses), &o, k)
	return err
}

// handlesTasks reports whether a request of the method may be answered with a task that the client
// waits for: the server offers tasks, and the program does not handle them itself.
func (c *Client) handlesTasks(method string) bool {
	if method != mcp.MethodCallTool || c.withTasks == nil {
		return false
	}
	s := c.conn.server.Load()
	return s != nil && s.Capabilities.Extensions[mcpwire.ExtensionTasks] != nil
}

// sendTaskRequest sends a request about a task.
func (c *Client) sendTaskRequest(ctx context.Context, method string, params json.RawMessage, o *CallOptions, k *callClock) (*mcp.Response, error) {
	return c.sendTask(ctx, &mcp.Request{Method: method, Params: params}, o, k)
}

// sendTask is sendTaskRequest for a request without capabilities.
func (c *Client) sendTask(ctx context.Context, req *mcp.Request, o *CallOptions, k *callClock) (*mcp.Response, error) {
	if c.withTasks == nil {
		return nil, errors.New("the program handles tasks itself: Options.Extensions defines them")
	}
	req.ClientCapabilities = c.withTasks
	resp, err := c.sendRequest(ctx, req, k, c.conn.reachLimit(o.Limits.Connect, o.Limits.Start))
	if err != nil {
		return nil, err
	}
	return resp, requireComplete(resp)
}

func (c *Client) getTask(ctx context.Context, id string, o *CallOptions, k *callClock) (*mcp.Response, *mcpwire.Task, error) {
	resp, err := c.sendTaskRequest(ctx, mcpwire.MethodGetTask, mcpwire.TaskParams(id, nil), o, k)
	if err != nil {
		return nil, nil, err
	}
	task, err := readTask(resp.Raw)
	return resp, task, err
}

func readTask(raw json.RawMessage) (*mcpwire.Task, error) {
	task := new(mcpwire.Task)
	if err := mcp.Decode(raw, task); err != nil {
		return nil, unreadable(err)
	}
	if task.TaskID == "" || task.Status == "" {
		return nil, errors.New("the server sent a task without an id or a status")
	}
	return task, nil
}

func describeTask(t *mcpwire.Task) (*TaskState, error) {
	s := &TaskState{
		Status: t.Status, Message: t.StatusMessage, Questions: t.InputRequests, Poll: time.Duration(t.PollIntervalMs) * time.Millisecond,
	}
	if t.TTLMs != nil {
		s.TTL = time.Duration(*t.TTLMs) * time.Millisecond
	}
	s.Created, _ = time.Parse(time.RFC3339, t.CreatedAt) // only for display
	s.Updated = updateTime(t)
	switch t.Status {
	case mcpwire.TaskCompleted:
		s.Result = new(mcp.CallToolResult)
		return s, mcp.Decode(t.Result, s.Result)
	case mcpwire.TaskFailed:
		s.Err = mcpwire.TaskError(t)
	}
	return s, nil
}
