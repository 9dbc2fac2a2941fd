package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// defaultPoll is the interval between two polls if the server has no preference, and
	// shortestPoll is the shortest one that the client accepts.
	defaultPoll  = time.Second
	shortestPoll = 20 * time.Millisecond
	// maxStuckPolls bounds the consecutive polls in which a task requires input without a question
	// that the client has not answered.
	maxStuckPolls = 60
	// cancelTimeout bounds the request that cancels a task whose call has ended.
	cancelTimeout = 5 * time.Second
)

// taskWait waits for the end of one task.
type taskWait struct {
	client  *Client
	id      string
	options *CallOptions
	clock   *callClock
	highest *float64 // progress that was reported; nil if the options have no OnProgress

	answered map[string]bool // keys
	rounds   int             // polls with new questions
	stuck    int             // consecutive polls that require input without a new question
	message  string          // the last one that was reported

	listener  *taskListener // nil before the first poll that finds the task working
	isCurrent bool          // notifications tell each change after the latest known state
	hasEnded  bool          // a notification has said so
	updated   time.Time     // of the latest known state
}

func (c *Client) newTaskWait(id string, o *CallOptions, k *callClock, highest *float64) *taskWait {
	return &taskWait{client: c, id: id, options: o, clock: k, highest: highest, answered: map[string]bool{}}
}

// awaitCreatedTask waits for the task of a call, and returns the response that the call would have
// had. If the wait fails, the task is cancelled.
func (c *Client) awaitCreatedTask(ctx context.Context, created *mcp.Response, o *CallOptions, k *callClock, highest *float64) (*mcp.Response, error) {
	task, err := readTask(created.Raw)
	if err != nil {
		return nil, err
	}
	options := *o // o may stay on the stack of calls that create no task
	w := c.newTaskWait(task.TaskID, &options, k, highest)
	w.reportMessage(task)
	if !waitDelay(ctx, firstPoll(task), nil) {
		w.cancelTask(ctx)
		return nil, context.Cause(ctx)
	}
	resp, isOver, err := w.pollUntilEnd(ctx)
	if err != nil && !isOver {
		w.cancelTask(ctx)
	}
	return resp, err
}

// pollUntilEnd asks for the task until it has ended, and answers its questions. isOver reports that
// the task has ended, or is unknown. Notifications replace most polls if the server sends them.
func (w *taskWait) pollUntilEnd(ctx context.Context) (resp *mcp.Response, isOver bool, err error) {
	defer w.stopListening()
	for {
		wasActive, _ := w.listener.state()
		resp, task, err := w.client.getTask(ctx, w.id, w.options, w.clock)
		if err != nil {
			told, isTold := errors.AsType[*mcp.Error](err)
			return nil, isTold && told.Code == jsonrpc.CodeInvalidParams, err
		}
		w.notePolled(task, wasActive)
		w.reportMessage(task)
		switch task.Status {
		case mcpwire.TaskCompleted:
			return &mcp.Response{Type: mcp.ResultComplete, Raw: task.Result, Revision: resp.Revision}, true, nil
		case mcpwire.TaskFailed:
			return nil, true, mcpwire.TaskError(task)
		case mcpwire.TaskCancelled:
			return nil, true, ErrTaskCancelled
		case mcpwire.TaskInputRequired:
			if !resp.Revision.Modern() {
				return w.awaitResult(ctx)
			}
		}
		answered, err := w.answerNew(ctx, resp.Revision, task)
		if err != nil {
			return nil, false, err
		}
		if !answered && !w.awaitNextPoll(ctx, resp.Revision, task) {
			return nil, false, context.Cause(ctx)
		}
	}
}

// awaitResult waits for the result of a task of 2025-11-25, which asks its questions meanwhile.
func (w *taskWait) awaitResult(ctx context.Context) (resp *mcp.Response, isOver bool, err error) {
	req := &mcp.Request{Method: mcpwire.MethodTaskResult, Params: mcpwire.TaskParams(w.id, nil)}
	if w.options.OnProgress != nil || w.clock.hasIdleLimit() {
		req.Notify = w.handleStatus
	}
	resp, err = w.client.sendTask(ctx, req, w.options, w.clock)
	_, isOver = errors.AsType[*mcp.Error](err)
	return resp, isOver || err == nil, err
}

// handleStatus takes a notification about the task while its result is awaited.
func (w *taskWait) handleStatus(n mcp.Notification) {
	w.clock.recordActivity()
	task := new(mcpwire.LegacyTask)
	if n.Method == mcpwire.NotificationTaskStatus && mcp.Decode(n.Params, task) == nil {
		w.reportMessage(task.Modern())
	}
}

// answerNew answers the questions of the task that it has not answered before.
func (w *taskWait) answerNew(ctx context.Context, revision mcp.Revision, task *mcpwire.Task) (answered bool, err error) {
	if task.Status != mcpwire.TaskInputRequired {
		w.stuck = 0
		return false, nil
	}
	fresh := map[string]mcp.InputRequest{}
	for key, q := range task.InputRequests {
		if !w.answered[key] {
			fresh[key] = q
		}
	}
	if len(fresh) == 0 {
		if w.stuck++; w.stuck >= maxStuckPolls {
			return false, fmt.Errorf("the task is stuck: it has required input %d times without a new question", w.stuck)
		}
		return false, nil
	}
	w.stuck = 0
	limit := w.client.opts.Limits.MaxRounds
	if w.options.Limits.MaxRounds > 0 {
		limit = w.options.Limits.MaxRounds
	}
	if w.rounds++; w.rounds > limit {
		return false, fmt.Errorf("%w: the task has asked %d times", ErrRounds, w.rounds)
	}
	answers, err := w.askUser(ctx, revision, fresh)
	if err != nil {
		return false, &mcpwire.TaskQuestionError{Err: err}
	}
	for key := range fresh {
		w.answered[key] = true
	}
	_, err = w.client.sendTaskRequest(ctx, mcpwire.MethodUpdateTask, mcpwire.TaskParams(w.id, answers), w.options, w.clock)
	return err == nil, err
}

// askUser answers questions while the clock of the call is stopped.
func (w *taskWait) askUser(ctx context.Context, revision mcp.Revision, questions map[string]mcp.InputRequest) ([]byte, error) {
	w.clock.pauseClock()
	defer w.clock.resumeClock()
	return w.client.answerAll(ctx, revision, questions)
}

// reportMessage reports a new status message as progress. The numbers only count the messages.
func (w *taskWait) reportMessage(task *mcpwire.Task) {
	if w.options.OnProgress == nil || task.StatusMessage == "" || task.StatusMessage == w.message {
		return
	}
	w.message = task.StatusMessage
	w.options.OnProgress(mcp.ProgressParams{Progress: max(0, math.Floor(*w.highest)+1), Message: task.StatusMessage})
}

// cancelTask tells the server that the result is no longer needed. It does so also after ctx has
// ended, and ignores failures.
func (w *taskWait) cancelTask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	_, err := w.client.sendTaskRequest(ctx, mcpwire.MethodCancelTask, mcpwire.TaskParams(w.id, nil), w.options, nil)
	if err != nil {
		w.client.opts.Logger.Debug("cannot cancel a task", "server", w.client.serverName(), "err", err)
	}
}
