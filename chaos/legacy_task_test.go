//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// A taskTool is a tool whose calls become tasks, and what becomes of these when their process ends.
type taskTool struct{ name, fate string }

// The tools for clients of 2025-11-25: behind the replicas of dowel, which make all tasks of such
// clients, and of the library.
var (
	frontTasks = []taskTool{{"work__task", history.Hosted}, {"old__task", history.Hosted}}
	gateTasks  = []taskTool{{"once", history.Once}, {"look", history.Rerun}, {"same", history.Rerun}, {"again", history.Rerun}}
)

// A legacyTask is a task of 2025-11-25, and a session that uses it.
type legacyTask struct {
	*legacyClient
	id, job, kind string
}

// useTaskSession opens a session, listens to its stream, uses tasks one after another, and ends it.
func (c *cluster) useTaskSession(ctx context.Context, one *legacyClient, tools []taskTool, random *rand.Rand, until func() bool) {
	if !c.openSession(ctx, one) {
		return
	}
	listening, stop := context.WithCancel(ctx)
	var listener sync.WaitGroup
	listener.Go(func() { c.hearStatus(listening, one) })
	for n := 1 + random.IntN(3); n > 0 && !until(); n-- {
		if err := c.useLegacyTask(ctx, one, tools[random.IntN(len(tools))], random, until); err != nil {
			_ = wait(ctx, 20*time.Millisecond)
		}
	}
	stop()
	listener.Wait()
	c.endSession(ctx, one)
}

// useLegacyTask starts a task, asks for its state and for its result at the same time, and may
// cancel it.
func (c *cluster) useLegacyTask(ctx context.Context, one *legacyClient, tool taskTool, random *rand.Rand, until func() bool) error {
	kind := []string{"plain", "asks", "asks", "waits"}[random.IntN(4)]
	if tool.fate == history.Hosted && kind == "waits" {
		kind = "plain" // as in useTask
	}
	t := &legacyTask{legacyClient: one, job: newJob("task"), kind: kind}
	work := job{Job: t.job, Kind: kind, Millis: random.IntN(2000)}
	if err := t.create(ctx, tool, work); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	var asker sync.WaitGroup
	asker.Go(func() { t.askForResult(asking) })
	defer func() { stop(); asker.Wait() }()
	cancelAfter := -1
	if kind == "waits" || random.IntN(8) == 0 {
		cancelAfter = random.IntN(12)
	}
	for polls, begun := 0, time.Now(); ; polls++ {
		if polls == cancelAfter && t.cancel(ctx) != nil {
			cancelAfter++ // again with the next poll
		}
		status, err := t.get(ctx)
		if isFinal(status) || isUnknownTask(err) || errors.Is(err, errMissing) || polls > 400 {
			break
		}
		if wait(ctx, time.Duration(50+random.IntN(150))*time.Millisecond) != nil {
			return ctx.Err()
		}
		if cancelAfter < 0 && time.Since(begun) > patience || until() && kind == "waits" && polls > cancelAfter {
			cancelAfter = polls + 1
		}
	}
	asker.Wait() // its end is known, so the result comes
	_, _ = t.get(ctx)
	_ = t.result(ctx) // it stays
	return nil
}

// record is do for an operation of the task. That a replica does not know the session is a fact
// about the session.
func (t *legacyTask) record(ctx context.Context, o *history.Op, run func(context.Context, *history.Op) error) error {
	o.Client, o.Job = t.name, t.job
	err := t.do(ctx, o, run)
	if errors.Is(err, errMissing) {
		o.Key, o.Kind = t.session, history.UseSession
	}
	return err
}

// create calls a tool as a task.
func (t *legacyTask) create(ctx context.Context, tool taskTool, work job) error {
	return t.record(ctx, &history.Op{Kind: history.Create, Got: t.kind, Status: tool.fate}, func(ctx context.Context, o *history.Op) error {
		arguments, err := json.Marshal(work)
		if err != nil {
			return err
		}
		e := &exchange{job: work}
		if err := t.send(ctx, e, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"task":{"ttl":3600000}}`, tool.name, arguments)); err != nil {
			return err
		}
		var created struct{ Task mcpwire.LegacyTask }
		if err := json.Unmarshal(e.raw, &created); err != nil {
			return err
		}
		if t.id = created.Task.TaskID; t.id == "" || created.Task.Status != mcpwire.TaskWorking {
			return fmt.Errorf("no new task, but %s", e.raw)
		}
		o.Key = t.id
		return nil
	})
}

// get asks for the state.
func (t *legacyTask) get(ctx context.Context) (status string, err error) {
	err = t.record(ctx, &history.Op{Kind: history.Get, Key: t.id, NoResult: true}, func(ctx context.Context, o *history.Op) error {
		var state mcpwire.LegacyTask
		e := new(exchange)
		err := t.send(ctx, e, "tasks/get", fmt.Sprintf(`{"taskId":%q}`, t.id))
		if err == nil {
			err = json.Unmarshal(e.raw, &state)
		}
		if err == nil && state.TaskID != t.id {
			err = fmt.Errorf("another task: %s", e.raw)
		}
		status, o.Status = state.Status, state.Status
		return err
	})
	return status, err
}

var refusedCancellation = regexp.MustCompile(`has ended already, with status (\w+)`)

// cancel cancels the task. The answer to a cancellation says that the task is cancelled; that of a
// task that has ended is an error.
func (t *legacyTask) cancel(ctx context.Context) error {
	return t.record(ctx, &history.Op{Kind: history.Cancel, Key: t.id}, func(ctx context.Context, o *history.Op) error {
		var state mcpwire.LegacyTask
		e := new(exchange)
		err := t.send(ctx, e, "tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, t.id))
		if refused, ok := errors.AsType[*mcp.Error](err); ok && refused.Code == -32602 {
			if match := refusedCancellation.FindStringSubmatch(refused.Message); match != nil {
				o.Status = match[1]
				return nil
			}
		}
		if err == nil {
			err = json.Unmarshal(e.raw, &state)
		}
		if err == nil && state.Status != mcpwire.TaskCancelled {
			err = fmt.Errorf("the answer to a cancellation is %s", e.raw)
		}
		o.Status = state.Status
		return err
	})
}

// askForResult asks for the result, which answers the questions of the task, until it has it.
func (t *legacyTask) askForResult(ctx context.Context) {
	for ctx.Err() == nil {
		// Its own context: the end of the asker is no end of an operation.
		if err := t.result(context.WithoutCancel(ctx)); err == nil || isUnknownTask(err) || errors.Is(err, errMissing) {
			return
		}
		_ = wait(ctx, 50*time.Millisecond)
	}
}

// finalErrors are the errors with which a task has ended, by a part of their text.
var finalErrors = map[string]string{
	"the task was cancelled and has no result": mcpwire.TaskCancelled,
	"the process that ran the task has ended":  mcpwire.TaskFailed,
	"the dowel that ran the call has ended":    mcpwire.TaskFailed,
}

// result asks for the result, and waits until the task has ended.
func (t *legacyTask) result(ctx context.Context) error {
	return t.record(ctx, &history.Op{Kind: history.Result, Key: t.id, Want: wantedResult(t.job, t.kind)}, func(ctx context.Context, o *history.Op) error {
		e := &exchange{task: t.id, job: job{Job: t.job}}
		err := t.send(ctx, e, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, t.id))
		if err == nil {
			o.Status, o.Got = mcpwire.TaskCompleted, e.result
			if !strings.Contains(string(e.raw), `"io.modelcontextprotocol/related-task":{"taskId":"`+t.id+`"}`) {
				o.Got += " without the task that it is related to"
			}
			return nil
		}
		for text, status := range finalErrors {
			if strings.Contains(err.Error(), text) {
				o.Status, o.Got = status, err.Error()
				return nil
			}
		}
		return err
	})
}

// hearStatus keeps the stream of a session open, and records the states of tasks that it tells
// (notifications/tasks/status). They are optional.
func (c *cluster) hearStatus(ctx context.Context, one *legacyClient) {
	within := c.h.Begin(&history.Op{Client: one.name, Kind: history.Follow})
	defer c.h.End(within, history.OK)
	s := &legacyWatch{watcher: &watcher{cluster: c, name: one.name}, client: one}
	s.onMessage = func(data []byte) {
		var m struct {
			Method string
			Params mcpwire.LegacyTask
		}
		if json.Unmarshal(data, &m) != nil || m.Method != mcpwire.NotificationTaskStatus {
			return
		}
		o := &history.Op{Client: one.name, Kind: history.Hear, Key: m.Params.TaskID, Status: m.Params.Status, NoResult: true, Within: within}
		o.Updated, _ = c.h.TimeOf(m.Params.LastUpdatedAt)
		c.h.AddHeard(o)
	}
	for ctx.Err() == nil {
		fields := []string{"Last-Event-ID", s.last}
		if s.last == "" {
			fields = nil
		}
		resp, err := one.request(ctx, http.MethodGet, "", fields...)
		if err == nil && resp.StatusCode == http.StatusOK {
			s.readEvents(resp.Body)
		}
		if err == nil {
			resp.Body.Close()
		}
		_ = wait(ctx, 50*time.Millisecond)
	}
}
