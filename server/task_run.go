package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// taskRun is one run of a tool's function for a task, or for a call that may become a task. While
// a task waits for answers, it does not run.
type taskRun struct {
	server  *Server
	tool    *registeredTool
	options TaskOptions
	id      string // of the task
	epoch   int    // of the record, in which the run may change it
	ctx     context.Context
	cancel  context.CancelCauseFunc
	outcome chan callOutcome // receives the end of a call that has not become a task
	isTask  bool             // guarded by the lock of the run's call

	mu       sync.Mutex // guards the rest; locked after the lock of a call
	expiry   *time.Timer
	message  string      // the latest status message
	storedAt time.Time   // of a message in the store
	storing  *time.Timer // stores the latest message later
	ended    bool
}

type callOutcome struct {
	res *mcp.Result
	err error
}

// Causes of the end of a run's context.
var (
	errTaskCancelled = errors.New("the client has cancelled the task")
	errTaskExpired   = errors.New("the task has reached its time to live")
	errServerClosed  = mcp.Errorf(codeInternal, "the server has shut down")
	errTaskTakenOver = errors.New("another process has taken the task over")
	errTaskEnded     = errors.New("another process has ended the task")
)

// askedInTask reports within the server that a task has asked questions.
var askedInTask = &mcp.Result{Type: mcp.ResultInputRequired}

// newTaskRun returns a run with the values of ctx. It does not end with ctx.
func (s *Server) newTaskRun(ctx context.Context, t *registeredTool) *taskRun {
	run := &taskRun{server: s, tool: t, options: t.task, id: rand.Text(), outcome: make(chan callOutcome, 1)}
	run.ctx, run.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return run
}

// isTask reports whether the call is a task. The caller holds c.mu, or the call has ended.
func (c *call) isTask() bool { return c.task != nil && c.task.isTask }

// runHandler runs the function of the tool and passes on the result: to the waiting call, or to the
// store.
func (run *taskRun) runHandler(c *call) {
	defer run.cancel(nil)
	for c != nil {
		res, err := run.runTool(c)
		if !c.isTask() {
			run.outcome <- callOutcome{res, err}
			return
		}
		c = run.settleTask(c, res, err)
	}
}

// runTool runs the function once. The call has ended when runTool returns.
func (run *taskRun) runTool(c *call) (res *mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, run.server.panicError(c.Context, c.req, p)
		}
	}()
	defer c.endCall()
	return run.server.runTool(c, run.tool)
}

// settleTask stores the end of a run. It returns the call to run next if the function only waits
// for the user to finish at a URL.
func (run *taskRun) settleTask(c *call, res *mcp.Result, err error) (next *call) {
	if res == askedInTask && len(c.input.openQuestions) == 0 {
		next = run.server.newCall(run.ctx, c.req, c.params)
		next.task, next.input = run, c.collectState().restoreInput()
		return next
	}
	run.end()
	defer run.server.tasks.removeRun(run)
	if err != nil && run.leaveToNextProcess() {
		return nil
	}
	change, failed := run.transition(c, res, err)
	if failed != nil {
		e := run.server.taskError(run.ctx, c, failed)
		change = func(next *tasks.Record) { endWithError(next, e) }
	}
	run.storeEnd(string(c.params.name), change)
	return nil
}

// Pauses between the attempts to store the end of a run.
const (
	firstStorePause = 100 * time.Millisecond
	maxStorePause   = 30 * time.Second
)

// storeEnd stores the end of a run. While the store fails, storeEnd tries again, because the task
// would stay working until its time to live is over. It gives up when that is over, or when the
// server or the store closes.
func (run *taskRun) storeEnd(tool string, change func(*tasks.Record)) {
	expiry := time.Now().Add(run.options.TTL)
	for pause := firstStorePause; ; pause = min(2*pause, maxStorePause) {
		err := run.updateTask(change)
		if err == nil || errors.Is(err, tasks.ErrUnknown) { // unknown means expired
			return
		}
		if errors.Is(err, tasks.ErrTooLarge) {
			e := mcp.Errorf(codeInternal, "the result of the task is lost: %v", err)
			change = func(next *tasks.Record) { endWithError(next, e) }
		}
		gaveUp := time.Now().After(expiry) || run.server.tasks.isClosed() || errors.Is(err, tasks.ErrClosed)
		if pause == firstStorePause || gaveUp {
			run.server.opts.Logger.ErrorContext(run.ctx, "the end of a task cannot be stored", "tool", tool, "err", err, "retry", !gaveUp)
		}
		if gaveUp {
			return
		}
		select {
		case <-time.After(pause):
		case <-run.server.tasks.closing:
		}
	}
}

// leaveToNextProcess leaves a task that was stopped by the end of its server to the process that
// runs next, as if this one had been killed. It reports false if the store ends with this process.
func (run *taskRun) leaveToNextProcess() bool {
	store := run.server.tasks.store
	if context.Cause(run.ctx) != errServerClosed || !store.IsGone(tasks.NoRunner) {
		return false
	}
	err := run.updateTask(func(next *tasks.Record) { next.Runner = tasks.NoRunner })
	if err != nil && !errors.Is(err, tasks.ErrUnknown) { // this process will be gone too
		run.server.opts.Logger.WarnContext(run.ctx, "a task ends with this process", "err", err)
	}
	return true
}

// transition returns the change of the record that the end of a run makes.
func (run *taskRun) transition(c *call, res *mcp.Result, err error) (change func(*tasks.Record), failed error) {
	if res == askedInTask {
		state, err := mcp.Encode(c.collectState())
		return func(next *tasks.Record) { parkTask(next, state, c.input.openQuestions, run.latestMessage()) }, err
	}
	if err == nil {
		raw, encoding := mcp.Encode(res.Value)
		if encoding == nil {
			raw = rawjson.Set(raw, "resultType", []byte(`"`+mcp.ResultComplete+`"`))
			return func(next *tasks.Record) { next.Result = raw; endTask(next, tasks.Completed, "") }, nil
		}
		err = encoding
	}
	e := run.server.taskError(run.ctx, c, err)
	return func(next *tasks.Record) { endWithError(next, e) }, nil
}

// taskError returns the protocol error that the call would have been answered with.
func (s *Server) taskError(ctx context.Context, c *call, err error) *mcp.Error {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*mcp.CapabilityError](err); ok {
		missing := mcpwire.MissingCapability(e)
		missing.Message = e.Error()
		return missing
	}
	if ctx.Err() == nil {
		s.opts.Logger.WarnContext(ctx, "a task failed", "tool", string(c.params.name), "err", err)
	}
	return mcp.Errorf(codeInternal, "internal error")
}

// parkTask makes the task wait for answers. Each question gets a key that the task has not used.
func parkTask(next *tasks.Record, state []byte, open map[string]openQuestion, message string) {
	next.Status, next.State, next.Message = tasks.InputRequired, state, message
	next.Open, next.Answers = make(map[string]tasks.Question, len(open)), nil
	for _, key := range slices.Sorted(maps.Keys(open)) {
		next.Asked++
		next.Open[key+"#"+strconv.Itoa(next.Asked)] = tasks.Question{Key: key, Method: open[key].request.Method, Params: open[key].request.Params}
	}
}

// endTask moves the task to a terminal state.
func endTask(next *tasks.Record, status tasks.Status, message string) {
	next.Status, next.Message = status, message
	next.State, next.Open, next.Answers = nil, nil, nil
}

// endWithError fails the task.
func endWithError(next *tasks.Record, e *mcp.Error) {
	next.Error = mcpwire.EncodeTaskError(e)
	endTask(next, tasks.Failed, e.Message)
}

// startExpiry cancels the run when the record expires.
func (run *taskRun) startExpiry(r *tasks.Record) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.expiry = time.AfterFunc(time.Until(r.Expires()), func() { run.cancel(errTaskExpired) })
}

// end stops the timers of the run.
func (run *taskRun) end() {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.ended = true
	run.expiry.Stop()
	if run.storing != nil {
		run.storing.Stop()
	}
}

// messageInterval is the least time between two changes of a task's status message.
const messageInterval = 250 * time.Millisecond

// noteProgress makes a report the status message of the task. A message that comes too soon is
// stored later, unless a newer one replaces it. The caller holds the lock of the run's call.
func (run *taskRun) noteProgress(done, total float64, message string) {
	if message == "" {
		if message = fmt.Sprint(done); total > 0 {
			message = fmt.Sprint(done, " of ", total)
		}
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	run.message = message
	if !run.isTask || run.storing != nil {
		return
	}
	if wait := messageInterval - time.Since(run.storedAt); wait > 0 {
		run.storing = time.AfterFunc(wait, run.storeLater)
		return
	}
	run.storeMessage()
}

func (run *taskRun) storeLater() {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.storing = nil; !run.ended {
		run.storeMessage()
	}
}

// storeMessage stores the latest message. The caller holds run.mu.
func (run *taskRun) storeMessage() {
	run.storedAt = time.Now()
	err := run.updateTask(func(next *tasks.Record) { next.Message = run.message })
	if err != nil && !errors.Is(err, tasks.ErrUnknown) {
		run.server.opts.Logger.WarnContext(run.ctx, "a task's message cannot be stored", "err", err)
	}
}

// updateTask changes the record of the task, unless the task has ended. If another run has begun
// since, it changes nothing, cancels this run and returns nil. It also returns nil if an earlier
// try has stored the end of the run without an acknowledgement.
func (run *taskRun) updateTask(change func(next *tasks.Record)) error {
	r, changed, err := tasks.Update(context.Background(), run.server.tasks.store, run.id, func(next *tasks.Record) bool {
		if next.Epoch != run.epoch || next.Status != tasks.Working {
			return false
		}
		change(next)
		next.Updated = time.Now()
		return true
	})
	switch {
	case changed:
		run.server.announceTask(r)
	case err == nil && r.Epoch != run.epoch:
		run.cancel(errTaskTakenOver)
	}
	return err
}

// checkRecord cancels the run if the task has ended, or if another run of it has begun.
func (run *taskRun) checkRecord(r *tasks.Record) {
	switch {
	case r.Epoch != run.epoch:
		run.cancel(errTaskTakenOver)
	case r.Status == tasks.Cancelled:
		run.cancel(errTaskCancelled)
	case r.Status.IsTerminal():
		run.cancel(errTaskEnded)
	}
}

func (run *taskRun) latestMessage() string {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.message
}

// updateTask changes a task that has not ended, and notifies the clients that listen to it.
func (s *Server) updateTask(id string, change func(next *tasks.Record)) (r *tasks.Record, changed bool, err error) {
	r, changed, err = tasks.Update(context.Background(), s.tasks.store, id, func(next *tasks.Record) bool {
		change(next)
		next.Updated = time.Now()
		return true
	})
	if changed {
		s.announceTask(r)
	}
	return r, changed, err
}
