package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
)

// A server may continue a call as a task. If the task takes longer than taskGrace, the call gets a
// result that says so, and the model continues. The end of the task is a message of the user's
// side, before the next step. If the model has answered before, the run waits for the end.
//
// The waits belong to a run. The next run, also in another process, waits again for each task that
// has no end in the conversation: the conversation holds the IDs of tasks, in the _meta of its
// blocks. Models do not get them.

// taskGrace is the time for which a call waits for its task.
const taskGrace = 3 * time.Second

// cancelLimit bounds the request that cancels a task.
const cancelLimit = 5 * time.Second

// metaTaskResult is a key of the _meta of blocks: the block is of a task's result. The value is
// true. Package opentask has the other keys.
const metaTaskResult = "dowel/task-result"

// taskEnd is the end of the wait for a task.
type taskEnd struct {
	open   opentask.Task
	result *mcp.CallToolResult
	err    error
}

// isUnknown reports whether the wait has ended before the task, as far as the client knows.
func (e *taskEnd) isUnknown() bool { return e.err != nil && !isTaskOver(e.err) }

// reason returns why the task has failed, or is not waited for any more, without its ID.
func (e *taskEnd) reason() error {
	if call, ok := errors.AsType[*client.CallError](e.err); ok {
		return call.Err
	}
	return e.err
}

// isTaskOver reports whether an error of a wait says that the task has ended, or that it has been
// cancelled since it does not get an answer.
func isTaskOver(err error) bool {
	_, ended := errors.AsType[*mcpwire.TaskEndError](err)
	return ended || isQuestionRefused(err)
}

func isQuestionRefused(err error) bool {
	_, refused := errors.AsType[*mcpwire.TaskQuestionError](err)
	return refused
}

// startWait waits for a task on another goroutine, until the run ends. The server's questions come
// through the background inbox. A task without an answer to its question is cancelled.
func (r *run) startWait(open opentask.Task, server string, task *client.Task, o client.CallOptions) <-chan *taskEnd {
	ctx := context.WithValue(r.ctx, targetKey{}, &questionTarget{inbox: r.background, ctx: r.ctx, server: server, sampled: &r.sampleUsage})
	end := make(chan *taskEnd, 1)
	r.calls.Go(func() {
		result, err := r.pollTask(ctx, open, task, o)
		switch {
		case isQuestionRefused(err) && ctx.Err() != nil: // the run has ended, and the next one is asked
			err = context.Cause(ctx)
		case isQuestionRefused(err):
			_ = cancelTask(ctx, task)
		}
		end <- &taskEnd{open, result, err}
	})
	return end
}

// After an error of the server about the state of a task, it is asked again after a pause, which
// grows. A wait without a good answer for pollPatience ends.
const (
	firstPollPause   = time.Second
	longestPollPause = 30 * time.Second
	pollPatience     = 10 * time.Minute
)

// pollTask waits for a task, also while its server cannot tell the state.
func (r *run) pollTask(ctx context.Context, open opentask.Task, task *client.Task, o client.CallOptions) (*mcp.CallToolResult, error) {
	var failing time.Time // since when
	pause := firstPollPause
	for {
		began := time.Now()
		result, err := task.Wait(ctx, o)
		if _, isTold := errors.AsType[*mcp.Error](err); !isTold || isTaskOver(err) || ctx.Err() != nil {
			return result, err
		}
		now := time.Now()
		switch {
		case failing.IsZero() || now.Sub(began) > 2*longestPollPause: // it could tell the state meanwhile
			failing, pause = now, firstPollPause
			r.background.putItem(inboxItem{notice: fmt.Sprintf("the state of the task of %s is not known now, and is asked for again: %v", r.titleOf(open.Tool), (&taskEnd{err: err}).reason())})
		case now.Sub(failing) > pollPatience:
			return nil, err
		}
		if err := timeout.Sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, longestPollPause)
	}
}

// holdTask waits taskGrace for the task of a call. It returns the result of the task, or a result
// that says that the task continues. Then t has the task and its end. It runs on the call's
// goroutine.
func (r *run) holdTask(ctx context.Context, t *toolCall, task *client.Task, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	var isCallOver atomic.Bool
	open := opentask.Task{ID: task.ID(), Call: t.use.ID, Tool: t.use.Name}
	end := r.startWait(open, t.server, task, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
		if !isCallOver.Load() {
			progress(p)
		}
	}})
	grace := time.NewTimer(taskGrace)
	defer grace.Stop()
	select {
	case e := <-end:
		err := e.reason()
		if e.isUnknown() && cancelTask(ctx, task) != nil {
			err = fmt.Errorf("%w. Its server was not reached to end the work, which may go on: find out before you repeat the call", err)
		}
		return e.result, err
	case <-ctx.Done():
		_ = cancelTask(ctx, task) // the call is given up
		return nil, context.Cause(ctx)
	case <-grace.C:
	}
	isCallOver.Store(true)
	t.open, t.end = &open, end
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("This call goes on at its server as a task. Its result comes as a message when the task has ended. " +
		"Go on with other work until then, or end your reply, and the result is waited for. Do not repeat the call.")}}, nil
}

// cancelTask tells the server that the result is not needed any more.
func cancelTask(ctx context.Context, task *client.Task) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	defer cancel()
	return task.Cancel(ctx)
}

// addTask adds the task of a call that continues, if it does, and its ID to the result.
func (r *run) addTask(t *toolCall, result *mcp.ToolResultContent) {
	if t.open == nil {
		return
	}
	result.Content[0].Meta = mcp.Meta{opentask.MetaBegun: t.open.MetaValue()}
	r.tasks = append(r.tasks, *t.open)
	r.followTask(t.end)
}

// followTask puts the end of a task into the background inbox.
func (r *run) followTask(end <-chan *taskEnd) {
	r.waits++
	r.calls.Go(func() { r.background.putItem(inboxItem{taskEnd: <-end}) })
}

// resumeTasks waits for the tasks of earlier runs.
func (r *run) resumeTasks() {
	holder, ok := r.tools.(interface {
		resumeTask(id string) *client.Task
	})
	if !ok {
		return
	}
	for _, open := range r.tasks {
		r.followTask(r.startWait(open, r.serverOf(open.Tool), holder.resumeTask(open.ID), client.CallOptions{}))
	}
}

// resumeTask returns a task by its ID.
func (b *Toolbox) resumeTask(id string) *client.Task { return b.client.Resume(id) }

// handleTaskEnd takes the end of a task for the next step.
func (r *run) handleTaskEnd(e *taskEnd) {
	r.waits--
	if e.isUnknown() {
		if r.ctx.Err() == nil {
			r.lostTask = fmt.Errorf("the task of %s is not waited for any more: %w", r.titleOf(e.open.Tool), e.reason())
			r.emit(Delta{Notice: r.lostTask.Error()})
		}
		return // the next run waits again
	}
	r.tasks = slices.DeleteFunc(r.tasks, func(o opentask.Task) bool { return o.ID == e.open.ID })
	result := mcp.ToolResultContent{IsError: true}
	switch {
	case e.err != nil:
		result.Content = []mcp.Content{mcp.Text(taskFailure(e.reason()))}
	case e.result != nil:
		result = toolResult(&mcp.ToolUse{ID: e.open.Call, Name: e.open.Tool}, e.result)
	}
	result.Content = plainBlocks(result.Content)
	result = r.results.limitResult(result, r.opts.Limits.MaxResult, r.opts.Limits.MaxMedia)
	outcome := "has ended"
	if result.IsError {
		outcome = "has failed"
	}
	r.taskEnds = append(r.taskEnds, taskMessage(&e.open, outcome, result.Content)...)
	r.emit(Delta{Notice: fmt.Sprintf("the task of %s %s%s", r.titleOf(e.open.Tool), outcome, describeEnd(result.Content))})
}

// taskFailure returns the text of a failure for the model.
func taskFailure(err error) string {
	if told, ok := errors.AsType[*mcp.Error](err); ok && !isQuestionRefused(err) {
		return told.Message
	}
	return err.Error()
}

// describeEnd returns the beginning of a result for a notice.
func describeEnd(content []mcp.Content) string {
	const longest = 200
	for i := range content {
		if text := oneLine(content[i].Text); text != "" {
			return ": " + abbreviate(text, longest)
		}
	}
	return ""
}

// deliverTaskEnds adds the ends of tasks to the conversation.
func (r *run) deliverTaskEnds() {
	for _, p := range r.background.takeReady() {
		r.handleItem(p)
	}
	r.keepTaskEnds()
}

func (r *run) keepTaskEnds() {
	if len(r.taskEnds) > 0 {
		r.history.appendContent(mcp.RoleUser, r.taskEnds...)
		r.taskEnds = nil
	}
}

// awaitTaskEnd waits for the end of a task after the model has answered. It reports whether there
// is one for the next step.
func (r *run) awaitTaskEnd() (bool, error) {
	for told := false; len(r.taskEnds) == 0; told = true {
		if r.waits == 0 {
			return false, r.lostTask
		}
		if !told {
			r.setState(Acting)
			r.emit(Delta{Notice: fmt.Sprintf("waiting for the task of %s: it goes on if you stop here, and your next message waits for it again", r.openTools())})
		}
		for _, p := range r.background.takeItems() {
			r.handleItem(p)
		}
		if r.ctx.Err() != nil {
			return false, r.endCause()
		}
	}
	return true, nil
}

// openTools returns the names of the tools with open tasks.
func (r *run) openTools() string {
	var names []string
	for _, o := range r.tasks {
		if name := r.titleOf(o.Tool); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// titleOf returns SERVER.TOOL for a tool, or its name if the server is unknown.
func (r *run) titleOf(tool string) string {
	if named, ok := r.tools.(interface {
		Origin(tool string) (server, name string, ok bool)
	}); ok {
		if server, name, ok := named.Origin(tool); ok {
			return server + "." + name
		}
	}
	return tool
}

// summaryMeta returns the _meta of a summary: it replaces the blocks that hold the open tasks.
func (a *Agent) summaryMeta() mcp.Meta {
	if len(a.tasks) == 0 {
		return nil
	}
	all := []any{}
	for _, o := range a.tasks {
		all = append(all, o.MetaValue())
	}
	return mcp.Meta{opentask.MetaOpen: all}
}

// withoutTaskMeta returns blocks of a server without the _meta that is the agent's own.
func withoutTaskMeta(content []mcp.Content) []mcp.Content {
	for i := range content {
		m := content[i].Meta
		for _, key := range []string{opentask.MetaBegun, opentask.MetaEnded, opentask.MetaOpen, metaTaskResult} {
			if _, ok := m[key]; ok {
				content = slices.Clone(content)
				content[i].Meta = maps.Clone(m)
				delete(content[i].Meta, key)
				m = content[i].Meta
			}
		}
	}
	return content
}

// findOpenTasks returns the tasks that have no end in a conversation.
func findOpenTasks(messages []Message) []opentask.Task {
	return opentask.Find(func(yield func([]mcp.Content) bool) {
		for i := range messages {
			if !yield(messages[i].Content) {
				return
			}
		}
	})
}
