package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// serveTask serves tasks/get, tasks/update and tasks/cancel.
func (s *Server) serveTask(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if err := checkTasksDeclared(req); err != nil {
		return nil, err
	}
	if err := s.roundLimiter.takeToken(req.Principal); err != nil {
		return nil, mcp.Errorf(codeInternal, "%v", err)
	}
	p, err := readParams(req, "taskId")
	if err != nil {
		return nil, err
	}
	r, err := s.findTask(ctx, req, string(p.name))
	if err != nil {
		return nil, err
	}
	audit.SetTool(ctx, r.Tool)
	switch req.Method {
	case mcpwire.MethodGetTask:
		return s.newResult(mcpwire.DescribeTaskFully(r)), nil
	case mcpwire.MethodCancelTask:
		return s.cancelTask(r.ID)
	}
	if p.responses == nil {
		return nil, mcp.InvalidParams("%s needs params.inputResponses, an object", req.Method)
	}
	return s.answerTask(ctx, req, r.ID, p)
}

// findTask is loadTask for a request that uses the task. If no process runs the task although it
// works, this process takes it over.
func (s *Server) findTask(ctx context.Context, req *mcp.Request, id string) (*tasks.Record, error) {
	r, err := s.loadTask(ctx, req.Principal, id)
	if err != nil || r.Status != tasks.Working || !s.isOrphan(r) {
		return r, err
	}
	if r, err = s.takeOver(ctx, req, r); err != nil {
		err = s.taskLookupError(ctx, err)
	}
	return r, err
}

// loadTask returns a task of the principal. The tasks of others, and the tasks of tools that are
// hidden from the principal, do not exist.
func (s *Server) loadTask(ctx context.Context, p mcp.Principal, id string) (*tasks.Record, error) {
	r, err := s.tasks.store.Load(ctx, id)
	if err == nil && !s.showsTask(ctx, p, r) {
		err = tasks.ErrUnknown
	}
	if err != nil {
		return nil, s.taskLookupError(ctx, err)
	}
	return r, nil
}

// showsTask reports whether a principal may see a task.
func (s *Server) showsTask(ctx context.Context, p mcp.Principal, r *tasks.Record) bool {
	_, visible := s.findVisible(ctx, p, KindTool, []byte(r.Tool))
	return r.Owner == p.ID && r.Space == s.opts.Info.Name && (visible || s.opts.Visible == nil)
}

func (s *Server) taskLookupError(ctx context.Context, err error) error {
	if errors.Is(err, tasks.ErrUnknown) {
		return mcp.InvalidParams("there is no task with this id, or it has expired")
	}
	s.opts.Logger.ErrorContext(ctx, "a task cannot be read or stored", "err", err)
	return mcp.Errorf(codeInternal, "the state of the task is not available")
}

// cancelTask ends a task. The end of a task that has ended already stays the same.
func (s *Server) cancelTask(id string) (*mcp.Result, error) {
	_, cancelled, err := s.updateTask(id, func(next *tasks.Record) {
		endTask(next, tasks.Cancelled, "cancelled by the client")
	})
	if err != nil {
		return nil, s.taskLookupError(context.Background(), err)
	}
	if cancelled {
		s.tasks.cancelRun(id, errTaskCancelled)
	}
	return s.newResult(nil), nil
}

// answerTask stores the answers to open questions and ignores all others. With the last answer, the
// function of the tool runs again.
func (s *Server) answerTask(ctx context.Context, req *mcp.Request, id string, p callParams) (*mcp.Result, error) {
	release := s.tasks.claim(id)
	r, answered, err := tasks.Update(ctx, s.tasks.store, id, func(next *tasks.Record) bool {
		if !storeAnswers(next, p.responses) {
			return false
		}
		if next.Status == tasks.Working { // it was the last answer
			next.Runner, next.Epoch = s.tasks.store.Runner(), next.Epoch+1
		}
		return true
	})
	defer func() {
		if release(err); err != nil {
			s.lookLater([]string{id}) // clients that listen to it ask no more
		}
	}()
	if err != nil {
		return nil, s.taskLookupError(ctx, err)
	}
	if answered {
		s.announceTask(r)
	}
	if answered && r.Status == tasks.Working {
		s.resumeTask(ctx, req, r)
	}
	return s.newResult(nil), nil
}

// storeAnswers moves the answers to open questions into the record. It returns false if there are
// none.
func storeAnswers(next *tasks.Record, responses []byte) (changed bool) {
	for it := rawjson.Object(responses); it.Next(); {
		q, open := next.Open[string(it.Key)]
		if !open || rawjson.IsNull(it.Value) {
			continue
		}
		delete(next.Open, string(it.Key))
		if next.Answers == nil {
			next.Answers = map[string]json.RawMessage{}
		}
		next.Answers[q.Key] = slices.Clone(it.Value)
		changed = true
	}
	if changed {
		next.Updated = time.Now()
		if len(next.Open) == 0 {
			next.Status = tasks.Working
		}
	}
	return changed
}

// resumeTask runs the tool of a task after all its questions were answered. The run has the context
// of the request that brought the last answer.
func (s *Server) resumeTask(ctx context.Context, req *mcp.Request, r *tasks.Record) {
	item, ok := s.catalog.lookupItem(KindTool, []byte(r.Tool))
	if !ok {
		s.failTask(ctx, r.ID, mcp.InvalidParams("the tool %s is gone", r.Tool))
		return
	}
	run := s.newTaskRun(ctx, item.entry.(*registeredTool))
	run.id, run.epoch, run.isTask, run.message = r.ID, r.Epoch, true, r.Message
	c, err := run.restoreCall(req, r)
	if err == nil {
		err = s.tasks.addRun(run)
	}
	if err != nil {
		if run.cancel(err); !run.leaveToNextProcess() {
			s.failTask(ctx, r.ID, err)
		}
		return
	}
	run.startExpiry(r)
	// A cancellation before addRun has not found the run.
	if latest, err := s.tasks.store.Load(ctx, r.ID); err != nil || latest.Status.IsTerminal() {
		run.cancel(errTaskCancelled)
	}
	go run.runHandler(c)
}

// restoreCall returns the call of a task for its next run.
func (run *taskRun) restoreCall(update *mcp.Request, r *tasks.Record) (*call, error) {
	repeated := detachRequest(update)
	repeated.Method, repeated.Params, repeated.Meta = mcp.MethodCallTool, r.Params, rawjson.Lookup(r.Params, "_meta")
	repeated.ProgressToken, repeated.LogLevel, repeated.Peer = nil, "", nil
	p, err := readParams(repeated, "name")
	if err != nil {
		return nil, err
	}
	var st requestState
	if r.State != nil {
		if err := mcp.Decode(r.State, &st); err != nil {
			return nil, err
		}
	}
	c := run.server.newCall(run.ctx, repeated, p)
	c.task, c.input = run, st.restoreInput()
	for key, raw := range r.Answers {
		c.input.addAnswer(key, st.Asked[key], raw)
	}
	return c, nil
}

// failTasksOf ends the tasks of tools that were removed, except those that run at other replicas.
func (s *Server) failTasksOf(removed []Item) {
	ctx := context.Background()
	if !s.catalog.hasTasks.Load() {
		return
	}
	for _, item := range removed {
		if item.Kind != KindTool {
			continue
		}
		open, err := s.tasks.store.ListTool(ctx, item.Name)
		if err != nil {
			s.opts.Logger.ErrorContext(ctx, "the tasks of a removed tool cannot be read", "tool", item.Name, "err", err)
			continue
		}
		gone := mcp.Errorf(codeInternal, "the tool %s was removed", item.Name)
		for _, r := range open {
			if r.Space != s.opts.Info.Name || r.Runner != s.tasks.store.Runner() && !s.tasks.store.IsGone(r.Runner) {
				continue // another replica may still have the tool
			}
			s.failTask(ctx, r.ID, gone)
			s.tasks.cancelRun(r.ID, gone)
		}
	}
}

// failTask ends a task that cannot be resumed.
func (s *Server) failTask(ctx context.Context, id string, cause error) {
	e, ok := errors.AsType[*mcp.Error](cause)
	if !ok {
		s.opts.Logger.ErrorContext(ctx, "a task cannot be resumed", "err", cause)
		e = mcp.Errorf(codeInternal, "internal error")
	}
	_, _, err := s.updateTask(id, func(next *tasks.Record) { endWithError(next, e) })
	if err != nil && !errors.Is(err, tasks.ErrUnknown) {
		s.opts.Logger.ErrorContext(ctx, "the end of a task cannot be stored", "err", err)
	}
}
