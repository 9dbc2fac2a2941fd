package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// TaskOptions make tasks of a tool's calls (extension io.modelcontextprotocol/tasks): the client
// gets the id of a task at once, asks for its state, answers its questions, and can cancel it. The
// function of the tool stays the same. A task outlives the request, so the context of the function
// ends only with the task: when the client cancels it, when TTL is over, or when the server closes.
//
// A question of a task runs the function again from the top, as in a call. Its context is then the
// context of the tasks/update request that brought the last answer. Log messages of a task are
// dropped, because the protocol has no way to send them.
//
// Clients of 2025-11-25 get the experimental tasks of that revision: a call that asks for a task
// becomes one at once, whatever After says, and lives for the time that the client asks for, at
// most TTL. Such a client can list its tasks if the transport knows its user.
type TaskOptions struct {
	Mode TaskMode
	// After is the time after which a call becomes a task. A call that ends before that is answered
	// with its result, and its questions before that are asked in the call. The default is 2 s with
	// TaskMay; with TaskMust it is 0, which makes a task of each call at once.
	After time.Duration
	// TTL is how long a task is kept, counted from its creation. A function that still runs then is
	// cancelled. The default is an hour.
	TTL time.Duration
	// Poll is the interval at which a client should ask for the state. The default is 1 s.
	Poll time.Duration
	// Takeover runs the function again from the top if the process that ran it has ended, with the
	// answers and the results of [Once] so far. It needs a store that outlives the process
	// ([Options].Tasks). Tools that are read-only or idempotent by their annotations are run again
	// without it; the tasks of all others fail.
	Takeover bool
}

// TaskMode says whether the calls of a tool become tasks. The zero value does all work within the
// call.
type TaskMode string

const (
	taskNever TaskMode = ""
	// TaskMay makes tasks for clients that understand them.
	TaskMay TaskMode = "may"
	// TaskMust also refuses calls of 2026-07-28 without the extension, and calls of 2025-11-25
	// that do not ask for a task. Earlier revisions have no tasks, so their calls do all work
	// within the call.
	TaskMust TaskMode = "must"
)

func (o TaskOptions) withDefaults() (TaskOptions, error) {
	switch o.Mode {
	case taskNever, TaskMust:
	case TaskMay:
		if o.After <= 0 {
			o.After = 2 * time.Second
		}
	default:
		return o, fmt.Errorf("Task.Mode is %q: want %q, %q or empty", o.Mode, TaskMay, TaskMust)
	}
	if o.TTL <= 0 {
		o.TTL = time.Hour
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	o.TTL, o.Poll = max(o.TTL, time.Millisecond), max(o.Poll, time.Millisecond) // the wire counts in milliseconds
	return o, nil
}

// offersTasks reports whether the server has tasks for the sender of a request.
func (s *Server) offersTasks(req *mcp.Request) bool {
	return s.catalog.hasTasks.Load() && (!isLegacy(req) || req.Revision == mcp.Revision20251125)
}

// servesTasks reports whether the server serves the methods of tasks for the sender of a request.
// The transport declares the extension for clients of 2025-11-25.
func (s *Server) servesTasks(req *mcp.Request) bool {
	return s.offersTasks(req) && (!isLegacy(req) || checkTasksDeclared(req) == nil)
}

// checkTaskUse decides whether a call of a tool may become a task. It returns an error if the
// client must call the tool differently. Clients of 2025-11-25 ask for the task of a call, and the
// transport declares the extension with such a call.
func checkTaskUse(req *mcp.Request, t *registeredTool) (possible bool, err error) {
	legacy := isLegacy(req)
	if legacy && req.Revision != mcp.Revision20251125 || !legacy && t.task.Mode == taskNever {
		return false, nil
	}
	err = checkTasksDeclared(req)
	switch {
	case err != nil && t.task.Mode != TaskMust:
		return false, nil
	case t.task.Mode == taskNever:
		return false, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the tool %s makes no tasks: call it without params.task", t.item.Name)
	case legacy && err != nil:
		return false, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the tool %s can only be called as a task: call it with params.task", t.item.Name)
	}
	return err == nil, err
}

// checkTasksDeclared returns an error unless the client has declared the extension with the
// request.
func checkTasksDeclared(req *mcp.Request) error {
	if _, declared := req.Capabilities().Extensions[mcpwire.ExtensionTasks]; declared {
		return nil
	}
	return &mcp.CapabilityError{Required: mcpwire.NeedsTasks()}
}

// callToolAsTask runs a tool for a call that may become a task. It returns the result of the tool,
// or the task.
func (s *Server) callToolAsTask(ctx context.Context, req *mcp.Request, t *registeredTool) (*mcp.Result, error) {
	req = detachRequest(req)
	p, err := readParams(req, "name")
	if err != nil {
		return nil, err
	}
	run := s.newTaskRun(ctx, t)
	run.options = requestedTask(req, t.task)
	c := s.newCall(run.ctx, req, p)
	c.task = run
	if refused, err := s.checkToolCall(c, t); refused != nil || err != nil {
		run.cancel(nil)
		return refused, err
	}
	if run.options.After == 0 {
		created, err := run.createTask(c)
		if err != nil {
			run.cancel(nil)
			return s.toolError(err.Error()), nil
		}
		go run.runHandler(c)
		return created, nil
	}
	go run.runHandler(c)
	return run.awaitCall(ctx, c)
}

// requestedTask returns the options of the tool's tasks. A client of 2025-11-25 gets a task at
// once, and may ask for a shorter life.
func requestedTask(req *mcp.Request, o TaskOptions) TaskOptions {
	if !isLegacy(req) {
		return o
	}
	o.After = 0
	asked, err := strconv.ParseInt(string(rawjson.Lookup(rawjson.Lookup(req.Params, "task"), "ttl")), 10, 64)
	if err == nil && asked > 0 && asked < o.TTL.Milliseconds() {
		o.TTL = time.Duration(asked) * time.Millisecond
	}
	return o
}

// detachRequest copies a request, because the original is invalid after its answer.
func detachRequest(req *mcp.Request) *mcp.Request {
	own := *req
	own.Params = bytes.Clone(req.Params)
	own.Meta = rawjson.Lookup(own.Params, "_meta")
	own.ClientCapabilities, own.ClientInfo = bytes.Clone(req.ClientCapabilities), bytes.Clone(req.ClientInfo)
	own.ProgressToken = bytes.Clone(req.ProgressToken)
	return &own
}

// awaitCall waits for the end of the call, or makes a task of it after the time in the tool's
// options.
func (run *taskRun) awaitCall(ctx context.Context, c *call) (*mcp.Result, error) {
	timer := time.NewTimer(run.options.After)
	defer timer.Stop()
	for {
		select {
		case out := <-run.outcome:
			return out.res, out.err
		case <-ctx.Done():
			run.cancel(context.Cause(ctx))
			out := <-run.outcome
			return out.res, out.err
		case <-timer.C:
		}
		created, err := run.createTask(c)
		switch {
		case err == nil:
			return created, nil
		case run.options.Mode == TaskMust && !errors.Is(err, errCallEnded):
			run.cancel(err)
			<-run.outcome
			return run.server.toolError(err.Error()), nil
		}
	}
}

// errCallEnded reports that a call has ended before it became a task.
var errCallEnded = errors.New("the call has ended")

// createTask makes a task of the call. When it returns, the store has the task.
func (run *taskRun) createTask(c *call) (*mcp.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, errCallEnded
	}
	r := run.newRecord(c)
	if err := run.server.tasks.addRun(run); err != nil {
		return nil, err
	}
	if err := run.server.tasks.store.Create(run.ctx, r, run.server.opts.MaxTasks); err != nil {
		run.server.tasks.removeRun(run)
		return nil, err
	}
	c.sendHeldBack()
	run.isTask = true
	run.startExpiry(r)
	result := run.server.newResult(mcpwire.DescribeTask(r))
	result.Type = mcpwire.ResultTask
	return result, nil
}

// newRecord returns the first version of the task. The caller holds c.mu.
func (run *taskRun) newRecord(c *call) *tasks.Record {
	now := time.Now()
	params, _ := rawjson.AppendMembers([]byte{'{'}, c.req.Params, func(key []byte) bool {
		return string(key) == "inputResponses" || string(key) == "requestState" || string(key) == "task"
	})
	r := &tasks.Record{
		ID: run.id, Owner: c.req.Principal.ID, Space: run.server.opts.Info.Name, Status: tasks.Working, Created: now, Updated: now, TTL: run.options.TTL, Poll: run.options.Poll,
		Tool: string(c.params.name), Params: append(params, '}'), Message: run.latestMessage(),
	}
	if c.input != nil {
		r.State, _ = mcp.Encode(c.collectState()) // the request's sealed state has held the same
	}
	return r
}
