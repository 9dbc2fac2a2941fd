package serving

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file gives tasks of the extension io.modelcontextprotocol/tasks the form of revision
// 2025-11-25. The handler sees a call with params.task as the call of a client that has declared
// the extension, and it sees the methods of the extension. Its settings of the extension are
// members of the capability tasks.

// taskState is the state of a session that tasks need.
type taskState struct {
	notOffered atomic.Bool     // initialize has offered no tasks
	watched    atomic.Int32    // tasks that the session watches
	asked      map[string]bool // questions that are being asked; guarded by session.mu
}

// maxWatchedTasks bounds the tasks of a session whose changes the client is told about. It can ask
// for the state of all others.
const maxWatchedTasks = 256

// hasTasks reports whether requests of the session may be about tasks.
func (ss *session) hasTasks() bool {
	return ss.Revision == mcp.Revision20251125 && ss.edge.tasks && !ss.tasks.notOffered.Load()
}

// wantsTask reports whether a call of a tool asks for a task.
func (ss *session) wantsTask(r *mcp.Request) bool {
	return ss.hasTasks() && rawjson.IsObject(rawjson.Lookup(r.Params, "task"))
}

// offerTasks returns the capabilities with tasks in the form of the session's revision.
func (ss *session) offerTasks(capabilities []byte) []byte {
	settings := rawjson.Lookup(rawjson.Lookup(capabilities, "extensions"), mcpwire.ExtensionTasks)
	if settings == nil || !ss.hasTasks() {
		ss.tasks.notOffered.Store(true)
		return capabilities
	}
	offered := rawjson.Set(rawjson.Set(settings, "cancel", []byte("{}")), "requests", []byte(`{"tools":{"call":{}}}`))
	return rawjson.Set(mcpwire.WithoutTasksCapability(capabilities), "tasks", offered)
}

// callAsTask serves a call that asks for a task. The session then tells the client about the
// changes of the task.
func (ss *session) callAsTask(c *call) (*mcp.Result, error) {
	c.req.ClientCapabilities = mcpwire.WithTasksCapability(c.req.ClientCapabilities)
	res, err := c.runRounds()
	switch {
	case err != nil:
		return nil, err
	case res.Type != mcpwire.ResultTask:
		return nil, refuseTask(res)
	}
	task, err := decodeTask(res)
	if err != nil {
		return nil, err
	}
	ss.watchTask(c, task)
	return &mcp.Result{Value: struct {
		Task *mcpwire.LegacyTask `json:"task"`
	}{task.Legacy()}}, nil
}

// refuseTask returns the error for a call that the handler has not made a task of.
func refuseTask(res *mcp.Result) *mcp.Error {
	var answer mcp.CallToolResult
	if raw, err := mcpwire.EncodeResult(res); err == nil && mcp.Decode(raw, &answer) == nil && answer.IsError && len(answer.Content) > 0 {
		return mcp.InvalidParams("%s", answer.Content[0].String())
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "the server made no task of the call: call the tool without params.task")
}

func decodeTask(res *mcp.Result) (*mcpwire.Task, error) {
	if task, ok := res.Value.(*mcpwire.Task); ok {
		return task, nil
	}
	task := new(mcpwire.Task)
	raw, err := mcpwire.EncodeResult(res)
	if err == nil {
		err = mcp.Decode(raw, task)
	}
	if err == nil && task.TaskID == "" {
		err = errors.New("the handler returned a task without an id")
	}
	return task, err
}

// serveTask serves the methods of tasks.
func (ss *session) serveTask(c *call) (*mcp.Result, error) {
	if c.req.Method == mcpwire.MethodListTasks {
		return c.edge.callHandler(c.ctx, &c.req)
	}
	id, ok := rawjson.String(rawjson.Lookup(c.req.Params, "taskId"))
	if !ok {
		return nil, mcp.InvalidParams("%s needs params.taskId, a string", c.req.Method)
	}
	task, err := ss.getTask(c.ctx, c, id)
	if err != nil {
		return nil, err
	}
	switch c.req.Method {
	case mcpwire.MethodTaskResult:
		return ss.awaitTask(c, task)
	case mcpwire.MethodCancelTask:
		if task, err = ss.cancelTask(c, task); err != nil {
			return nil, err
		}
	}
	return &mcp.Result{Value: task.Legacy()}, nil
}

// callTaskMethod calls a method of the extension at the handler.
func (ss *session) callTaskMethod(ctx context.Context, c *call, method, id string, answers json.RawMessage) (*mcp.Result, error) {
	req := c.req
	req.Method, req.Params, req.Meta, req.ProgressToken = method, mcpwire.TaskParams(id, answers), nil, nil
	req.ClientCapabilities = mcpwire.WithTasksCapability(req.ClientCapabilities)
	return c.edge.callHandler(ctx, &req)
}

func (ss *session) getTask(ctx context.Context, c *call, id string) (*mcpwire.Task, error) {
	res, err := ss.callTaskMethod(ctx, c, mcpwire.MethodGetTask, id, nil)
	if err != nil {
		return nil, err
	}
	return decodeTask(res)
}

// cancelTask cancels a task and waits until it has ended. It returns an error if the task has ended
// otherwise.
func (ss *session) cancelTask(c *call, task *mcpwire.Task) (*mcpwire.Task, error) {
	if !task.HasEnded() {
		if _, err := ss.callTaskMethod(c.ctx, c, mcpwire.MethodCancelTask, task.TaskID, nil); err != nil {
			return nil, err
		}
		changed, stop := ss.listenToTask(c, task.TaskID)
		defer stop()
		var err error
		for {
			if task, err = ss.getTask(c.ctx, c, task.TaskID); err != nil || task.Status == mcpwire.TaskCancelled {
				return task, err
			}
			if task.HasEnded() {
				break
			}
			if err := waitForTask(c.ctx, changed); err != nil {
				return nil, err
			}
		}
	}
	return nil, mcp.InvalidParams("the task cannot be cancelled: it has ended already, with status %s", task.Legacy().Status)
}

// awaitTask waits for the end of a task, asks its questions, and returns the result or the error of
// its call.
func (ss *session) awaitTask(c *call, task *mcpwire.Task) (res *mcp.Result, err error) {
	if task.HasEnded() {
		return ss.taskResult(task)
	}
	changed, stop := ss.listenToTask(c, task.TaskID)
	defer stop()
	for {
		if task, err = ss.getTask(c.ctx, c, task.TaskID); err != nil {
			return nil, err
		}
		if task.HasEnded() {
			return ss.taskResult(task)
		}
		asked, err := ss.askForTask(c, task, changed)
		if err != nil {
			return nil, err
		}
		if asked {
			continue
		}
		if err := waitForTask(c.ctx, changed); err != nil {
			return nil, err
		}
	}
}

// waitForTask waits for a change of a task. It returns after a while without one, because the
// handler need not report changes.
func waitForTask(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// taskResult returns the result or the error of the call of a task that has ended.
func (ss *session) taskResult(task *mcpwire.Task) (*mcp.Result, error) {
	switch task.Status {
	case mcpwire.TaskCompleted:
		raw := mcpwire.AdaptResult(ss.Revision, mcp.MethodCallTool, task.Result)
		return &mcp.Result{Raw: mcpwire.WithRelatedTask(raw, task.TaskID)}, nil
	case mcpwire.TaskFailed:
		return nil, mcpwire.TaskError(task)
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "the task was cancelled and has no result")
}

// errTaskOver ends the questions of a task that has ended.
var errTaskOver = errors.New("the task has ended")

// askUntilTaskEnds asks the questions of a task. It withdraws them with the error errTaskOver when
// the task has ended or has expired. changed is ready after each change of the task.
func (ss *session) askUntilTaskEnds(c *call, id string, questions map[string]mcp.InputRequest, changed <-chan struct{}) (map[string]json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for waitForTask(ctx, changed) == nil {
			task, err := ss.getTask(ctx, c, id)
			refusal, _ := errors.AsType[*mcp.Error](err)
			isUnknown := refusal != nil && refusal.Code == jsonrpc.CodeInvalidParams
			if isUnknown || err == nil && task.HasEnded() {
				cancel(errTaskOver)
			}
		}
	})
	defer watching.Wait()
	defer cancel(nil)
	return ss.askQuestions(ctx, c, questions)
}

// askForTask asks the client the open questions of a task that no other request asks now, and
// passes on the answers. It withdraws them if the task ends meanwhile. It returns false if there
// are none.
func (ss *session) askForTask(c *call, task *mcpwire.Task, changed <-chan struct{}) (asked bool, err error) {
	questions := map[string]mcp.InputRequest{}
	for key, q := range task.InputRequests {
		if name := task.TaskID + " " + key; ss.claimQuestion(name) {
			defer ss.releaseQuestion(name)
			questions[key] = mcp.InputRequest{Method: q.Method, Params: mcpwire.WithRelatedTask(q.Params, task.TaskID)}
		}
	}
	if len(questions) == 0 {
		return false, nil
	}
	var answers map[string]json.RawMessage
	if err = checkAskable(c, &mcp.InputRequiredResult{InputRequests: questions}); err == nil {
		answers, err = ss.askUntilTaskEnds(c, task.TaskID, questions, changed)
	}
	if errors.Is(err, errTaskOver) {
		return true, nil
	}
	if err != nil {
		if _, isRefused := errors.AsType[*refusedQuestionError](err); isRefused {
			ss.endRefused(c, task.TaskID)
		}
		return false, err
	}
	raw, err := mcp.Encode(answers)
	if err == nil {
		_, err = ss.callTaskMethod(c.ctx, c, mcpwire.MethodUpdateTask, task.TaskID, raw)
	}
	return true, err
}

// endRefused cancels a task after the client has refused its question: the task would wait for an
// answer until its time to live is over. A question without an answer stays open, because the
// client may ask for the result again.
func (ss *session) endRefused(c *call, id string) {
	if c.ctx.Err() != nil {
		return
	}
	if _, err := ss.callTaskMethod(c.ctx, c, mcpwire.MethodCancelTask, id, nil); err != nil {
		ss.edge.logger.Debug("cannot cancel a task", "err", err)
	}
}

// claimQuestion reports whether the caller is to ask a question of a task.
func (ss *session) claimQuestion(name string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.tasks.asked[name] {
		return false
	}
	if ss.tasks.asked == nil {
		ss.tasks.asked = map[string]bool{}
	}
	ss.tasks.asked[name] = true
	return true
}

func (ss *session) releaseQuestion(name string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.tasks.asked, name)
}

// taskListener is a subscription to the changes of one task, and the peer of its request.
type taskListener struct {
	req      mcp.Request
	onChange func(params json.RawMessage)
}

// Notify implements [mcp.Peer].
func (l *taskListener) Notify(context.Context, mcp.Notification) error { return nil }

// Change implements [mcp.Peer].
func (l *taskListener) Change(ctx context.Context, change mcp.Notification) error {
	switch {
	case ctx.Err() != nil:
		return mcp.ErrPeerGone
	case change.Method == mcp.NotificationAcknowledged && !l.isAccepted(change.Params):
		return mcp.ErrPeerGone // nothing will come
	case change.Method == mcpwire.NotificationTask:
		l.onChange(change.Params)
	}
	return nil
}

// isAccepted reports whether the handler has accepted the subscription to the task.
func (l *taskListener) isAccepted(acknowledgement json.RawMessage) bool {
	ids := rawjson.Lookup(rawjson.Lookup(acknowledgement, "notifications"), mcpwire.ListenTasks)
	it := rawjson.Array(ids)
	return it.Next()
}

func (ss *session) newTaskListener(c *call, id string, onChange func(json.RawMessage)) *taskListener {
	params := append(rawjson.AppendString([]byte(`{"notifications":{"`+mcpwire.ListenTasks+`":[`), id), "]}}"...)
	l := &taskListener{onChange: onChange}
	l.req = mcp.Request{
		Method: mcp.MethodListen, Params: params, Revision: ss.Revision, Principal: c.req.Principal, Header: c.req.Header, Peer: l,
		ClientCapabilities: mcpwire.WithTasksCapability(ss.Capabilities), ClientInfo: ss.ClientInfo,
	}
	return l
}

// listenToTask returns a channel that is ready after each change of a task, until stop is called.
func (ss *session) listenToTask(c *call, id string) (changed <-chan struct{}, stop func()) {
	wake := make(chan struct{}, 1)
	l := ss.newTaskListener(c, id, func(json.RawMessage) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.edge.callHandler(ctx, &l.req)
	}()
	return wake, func() {
		cancel()
		<-done
	}
}

// maxTaskWatch is how long a session reports the changes of one task.
const maxTaskWatch = 24 * time.Hour

// watchTask tells the client about the changes of a task, until the task or the session has ended.
func (ss *session) watchTask(c *call, created *mcpwire.Task) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed || ss.base == nil || ss.tasks.watched.Load() >= maxWatchedTasks {
		return
	}
	lifetime := maxTaskWatch
	if created.TTLMs != nil {
		lifetime = min(lifetime, time.Duration(*created.TTLMs)*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ss.base, lifetime)
	w := &taskWatch{session: ss, end: cancel, last: *created.Legacy(), token: append(json.RawMessage(nil), c.req.ProgressToken...)}
	l := ss.newTaskListener(c, created.TaskID, w.tellClient)
	l.req.Header = nil // it belongs to the request of the call
	ss.tasks.watched.Add(1)
	ss.wg.Add(1)
	go func() {
		defer ss.wg.Done()
		defer ss.tasks.watched.Add(-1)
		defer cancel()
		<-c.ctx.Done() // on a shared channel, the client gets the task before its changes
		if _, err := ss.edge.callHandler(ctx, &l.req); err != nil && ctx.Err() == nil {
			ss.edge.logger.Debug("the server does not report the changes of tasks", "err", err)
		}
	}()
}

// taskWatch tells the client about the changes of one task.
type taskWatch struct {
	session *session
	end     context.CancelFunc

	mu       sync.Mutex         // guards the rest, and keeps the order of messages
	last     mcpwire.LegacyTask // as the client knows it
	token    json.RawMessage    // for progress; empty if the client wants none
	progress int
}

// tellClient sends the client a change of the task: its state and, if the client has asked for
// progress, a new message. The numbers of the progress only count the messages.
func (w *taskWatch) tellClient(params json.RawMessage) {
	task := new(mcpwire.Task)
	if mcp.Decode(params, task) != nil {
		return
	}
	now := task.Legacy()
	w.mu.Lock()
	defer w.mu.Unlock()
	if task.HasEnded() {
		defer w.end()
	}
	if now.Status == w.last.Status && (now.StatusMessage == w.last.StatusMessage || now.StatusMessage == "") {
		return // no change, or the state at the beginning, behind a newer one
	}
	if len(w.token) > 0 && now.Status == mcpwire.TaskWorking && now.StatusMessage != "" {
		w.progress++
		text := append(append([]byte(`{"progressToken":`), w.token...), `,"progress":`...)
		text = append(strconv.AppendInt(text, int64(w.progress), 10), `,"message":`...)
		text = append(rawjson.AppendString(text, now.StatusMessage), '}')
		_ = w.session.out.Write(jsonrpc.AppendNotification(nil, mcp.NotificationProgress, mcpwire.WithRelatedTask(text, now.TaskID)))
	}
	w.last = *now
	if raw, err := mcp.Encode(now); err == nil {
		_ = w.session.out.Write(jsonrpc.AppendNotification(nil, mcpwire.NotificationTaskStatus, raw))
	}
}
