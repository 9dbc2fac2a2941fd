package calling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file gives the experimental tasks of revision 2025-11-25 the form of the extension
// io.modelcontextprotocol/tasks. A tool that can only be called as a task is called so; a tool with
// optional tasks, if the request has params.task. Only requests that declare the extension are.
// What the extension lacks stays as it is: a task asks its questions live while tasks/result waits,
// and tasks/update is an error.

// maxToolPages bounds the pages of the list of tools that are read to learn which tools have tasks.
const maxToolPages = 100

// offerLegacyTasks returns the capabilities of a server with the extension in place of its tasks.
func offerLegacyTasks(version mcp.Revision, capabilities []byte) (translated []byte, offered bool) {
	requests := rawjson.Lookup(rawjson.Lookup(capabilities, "tasks"), "requests")
	offered = version == mcp.Revision20251125 && rawjson.Lookup(rawjson.Lookup(requests, "tools"), "call") != nil
	capabilities = mcpwire.WithoutTasksCapability(capabilities)
	if offered {
		capabilities = mcpwire.WithTasksCapability(capabilities)
	}
	return capabilities, offered
}

// interceptTask handles a request that may be about a task.
func (l *legacyEra) interceptTask(ctx context.Context, req *mcp.Request) (*mcp.Response, error, bool) {
	if !l.tasks {
		return nil, nil, false
	}
	var resp *mcp.Response
	var err error
	switch req.Method {
	case mcp.MethodCallTool:
		if rawjson.Lookup(rawjson.Lookup(req.ClientCapabilities, "extensions"), mcpwire.ExtensionTasks) == nil {
			return nil, nil, false
		}
		resp, err = l.callTool(ctx, req)
	case mcpwire.MethodGetTask:
		resp, err = l.getTask(ctx, req)
	case mcpwire.MethodTaskResult:
		l.awaitStream(ctx)
		resp, err = l.awaitResult(ctx, req)
	case mcpwire.MethodCancelTask:
		resp, err = l.cancelTask(ctx, req)
	case mcpwire.MethodUpdateTask:
		err = mcp.Errorf(jsonrpc.CodeMethodNotFound, "a server of revision %s asks the questions of a task while its result is awaited: wait for the task", l.version)
	default:
		return nil, nil, false
	}
	return resp, err, true
}

// callTool calls a tool as a task if it must be called so, or may and the caller wants it.
func (l *legacyEra) callTool(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	support, err := l.findTaskSupport(ctx)
	if err != nil {
		return nil, fmt.Errorf("the list of tools, which says how to call a tool: %w", err)
	}
	wanted := rawjson.Lookup(req.Params, "task")
	switch lookupTool(support, rawjson.Lookup(req.Params, "name")) {
	case "required":
		return l.callAsTask(ctx, req, wanted)
	case "optional":
		if wanted != nil {
			return l.callAsTask(ctx, req, wanted)
		}
	}
	if wanted != nil {
		req = withParams(req, rawjson.Set(req.Params, "task", nil))
	}
	return l.c.sendInTurn(ctx, req, l)
}

// lookupTool returns the value of a tool by its encoded name. It does not allocate for a name
// without escapes.
func lookupTool(support map[string]string, name []byte) string {
	if len(name) >= 2 && bytes.IndexByte(name, '\\') < 0 {
		return support[string(name[1:len(name)-1])]
	}
	text, _ := rawjson.String(name)
	return support[text]
}

func withParams(req *mcp.Request, params json.RawMessage) *mcp.Request {
	own := *req
	own.Params = params
	return &own
}

func (l *legacyEra) callAsTask(ctx context.Context, req *mcp.Request, wanted json.RawMessage) (*mcp.Response, error) {
	if !rawjson.IsObject(wanted) {
		req = withParams(req, rawjson.Set(req.Params, "task", []byte("{}")))
	}
	resp, err := l.c.sendRequest(ctx, req, l)
	if err != nil {
		return nil, err
	}
	created := rawjson.Lookup(resp.Raw, "task")
	if !rawjson.IsObject(created) {
		return resp, nil // the server has done all work within the call
	}
	legacy, err := readLegacyTask(created)
	if err != nil {
		return nil, err
	}
	raw, err := mcp.Encode(legacy.Modern())
	return &mcp.Response{Type: mcpwire.ResultTask, Raw: raw, Revision: l.version}, err
}

func readLegacyTask(raw json.RawMessage) (*mcpwire.LegacyTask, error) {
	task := new(mcpwire.LegacyTask)
	if err := mcp.Decode(raw, task); err != nil {
		return nil, fmt.Errorf("the server sent a task that cannot be read: %w", err)
	}
	if task.TaskID == "" || task.Status == "" {
		return nil, errors.New("the server sent a task without an id or a status")
	}
	return task, nil
}

// findTaskSupport returns the members execution.taskSupport of the server's tools, by name.
func (l *legacyEra) findTaskSupport(ctx context.Context) (map[string]string, error) {
	if support, _ := l.knownTaskSupport(); support != nil {
		return support, nil
	}
	select {
	case l.toolsLock <- struct{}{}:
		defer func() { <-l.toolsLock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	support, version := l.knownTaskSupport()
	if support != nil {
		return support, nil
	}
	support, err := l.listTaskSupport(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.toolsVersion == version { // else the list has changed meanwhile
		l.taskSupport = support
	}
	return support, nil
}

// knownTaskSupport returns the result of an earlier findTaskSupport, or nil, and the
// version of the list of tools.
func (l *legacyEra) knownTaskSupport() (support map[string]string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taskSupport, l.toolsVersion
}

// listTaskSupport reads the list of tools.
func (l *legacyEra) listTaskSupport(ctx context.Context) (map[string]string, error) {
	support := map[string]string{}
	params := json.RawMessage("{}")
	for range maxToolPages {
		resp, err := l.c.sendRequest(ctx, &mcp.Request{Method: mcp.MethodListTools, Params: params}, l)
		if err != nil {
			return nil, err
		}
		for it := rawjson.Array(rawjson.Lookup(resp.Raw, "tools")); it.Next(); {
			name, _ := rawjson.String(rawjson.Lookup(it.Value, "name"))
			if s, ok := rawjson.String(rawjson.Lookup(rawjson.Lookup(it.Value, "execution"), "taskSupport")); ok {
				support[name] = s
			}
		}
		cursor := rawjson.Lookup(resp.Raw, "nextCursor")
		if cursor == nil || rawjson.IsNull(cursor) {
			break
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return support, nil
}

// forgetTools makes the next call read the list of tools again.
func (l *legacyEra) forgetTools() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taskSupport = nil
	l.toolsVersion++
}

// getTask serves tasks/get of the extension: the state of a task, with the result or the error of a
// task that has ended.
func (l *legacyEra) getTask(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	resp, err := l.c.sendRequest(ctx, req, l)
	if err != nil {
		return nil, err
	}
	legacy, err := readLegacyTask(resp.Raw)
	if err != nil {
		return nil, err
	}
	task := legacy.Modern()
	if task.Status == mcpwire.TaskCompleted || task.Status == mcpwire.TaskFailed {
		if err := l.fetchResult(ctx, req, task); err != nil {
			return nil, err
		}
	}
	raw, err := mcp.Encode(task)
	return &mcp.Response{Type: mcp.ResultComplete, Raw: raw, Revision: l.version}, err
}

// fetchResult adds the result or the error of a task that has ended. A task of the extension has
// failed only if its call had no result.
func (l *legacyEra) fetchResult(ctx context.Context, req *mcp.Request, task *mcpwire.Task) error {
	resp, err := l.awaitResult(ctx, req)
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		task.Status = mcpwire.TaskFailed
		task.Error = mcpwire.EncodeTaskError(e)
		return nil
	}
	if err != nil {
		return err
	}
	task.Status = mcpwire.TaskCompleted
	task.Result = rawjson.Set(resp.Raw, "resultType", []byte(`"`+mcp.ResultComplete+`"`))
	return nil
}

// findTaskWaiters appends the requests that wait for the result of the task that n is about. The
// client gets n too, as without such requests.
func (l *legacyEra) findTaskWaiters(n mcp.Notification, receivers []*exchange) []*exchange {
	id, _ := rawjson.String(rawjson.Lookup(n.Params, "taskId"))
	l.c.mu.Lock()
	for _, x := range l.c.pending {
		if x.taskID != "" && x.taskID == id {
			receivers = append(receivers, x)
		}
	}
	l.c.mu.Unlock()
	if len(receivers) > 0 {
		l.c.in.Notify(n)
	}
	return receivers
}

// awaitResult sends tasks/result, which waits for the end of a task, and returns the result of the
// call without the mark of the task.
func (l *legacyEra) awaitResult(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	own := *req
	own.Method = mcpwire.MethodTaskResult
	resp, err := l.c.sendRequest(ctx, &own, l)
	if err != nil {
		return nil, err
	}
	meta := rawjson.Lookup(resp.Raw, "_meta")
	if rawjson.Lookup(meta, mcpwire.MetaRelatedTask) == nil {
		return resp, nil
	}
	if meta = rawjson.Set(meta, mcpwire.MetaRelatedTask, nil); string(meta) == "{}" {
		meta = nil
	}
	plain := *resp
	plain.Raw = rawjson.Set(resp.Raw, "_meta", meta)
	return &plain, nil
}

// cancelTask serves tasks/cancel of the extension, which also acknowledges the cancellation of a
// task that has ended.
func (l *legacyEra) cancelTask(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	_, err := l.c.sendRequest(ctx, req, l)
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Code == jsonrpc.CodeInvalidParams {
		get := *req
		get.Method = mcpwire.MethodGetTask
		if _, unknown := l.c.sendRequest(ctx, &get, l); unknown == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &mcp.Response{Type: mcp.ResultComplete, Raw: json.RawMessage("{}"), Revision: l.version}, nil
}
