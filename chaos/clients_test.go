//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// opLimit bounds each operation. None that the cluster handles well comes near it.
const opLimit = time.Minute

// patience is how long a client asks for its task before it cancels it: 5 s longer than decision 30
// allows for the takeover of a task. A longer wait would keep a call at the legacy server open, and
// its questions would hold up those of other clients until their operations time out.
const patience = leaseLife + 10*time.Second

var jobs atomic.Int64

func newJob(kind string) string { return fmt.Sprintf("%s%d", kind, jobs.Add(1)) }

// do records an operation. run fills in what it saw and returns its error.
func (c *cluster) do(ctx context.Context, o *history.Op, run func(context.Context, *history.Op) error) error {
	mark := newJob("op")
	ctx, cancel := context.WithTimeout(withMark(ctx, mark), opLimit)
	defer cancel()
	c.h.Begin(o)
	err := run(ctx, o)
	o.Owner = c.ownerOf(mark)
	outcome := history.OK
	switch {
	case err == nil:
	case ctx.Err() != nil:
		outcome = history.Hung
	case errors.Is(err, errMissing), o.Key != "" && isUnknownTask(err):
		outcome = history.Missing
	default:
		outcome = history.Failed
	}
	if err != nil {
		o.Err = err.Error()
	}
	c.h.End(o, outcome)
	return err
}

// isUnknownTask reports whether the server does not know a task.
func isUnknownTask(err error) bool {
	e, ok := errors.AsType[*mcp.Error](err)
	return ok && e.Code == -32602 && strings.Contains(e.Message, "task")
}

// work lets a client do random things until the end: in sessions of its own, or with tasks.
func (c *cluster) work(ctx context.Context, name string, random *rand.Rand, until func() bool) {
	own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for !until() {
		switch {
		case strings.HasPrefix(name, "listener"):
			c.useListened(ctx, name, own, random, until)
		case strings.HasPrefix(name, "legacy"):
			switch random.IntN(4) {
			case 0:
				c.useTaskSession(ctx, newLegacyClient(c, name, "http://"+c.front.address()+"/mcp", own), frontTasks, random, until)
			case 1:
				c.useTaskSession(ctx, newLegacyClient(c, name, "http://"+c.gate.address(), own), gateTasks, random, until)
			default:
				c.useSession(ctx, newLegacyClient(c, name, "http://"+c.front.address()+"/mcp", own), random, until)
			}
		default:
			c.useModern(ctx, name, own, random, until)
		}
	}
}

// useSession opens a session, uses it, and ends it.
func (c *cluster) useSession(ctx context.Context, one *legacyClient, random *rand.Rand, until func() bool) {
	if !c.openSession(ctx, one) {
		return
	}
	thief := newLegacyClient(c, one.name, one.url, one.http)
	thief.token, thief.session = otherToken, one.session
	for n := 3 + random.IntN(10); n > 0 && !until(); n-- {
		var err error
		switch random.IntN(7) {
		case 6:
			err = c.callLegacy(ctx, one, &history.Op{Kind: history.Shared, Job: newJob("shared")}, "shared__work", job{Millis: random.IntN(1500)})
		case 5:
			err = c.do(ctx, &history.Op{Client: one.name, Kind: history.Steal, Key: one.session, Got: "an answer to a ping"}, func(ctx context.Context, _ *history.Op) error { return thief.ping(ctx) })
		case 0:
			err = c.do(ctx, &history.Op{Client: one.name, Kind: history.UseSession, Key: one.session}, func(ctx context.Context, _ *history.Op) error { return one.ping(ctx) })
		case 1:
			err = c.callLegacy(ctx, one, &history.Op{Kind: history.Call, Job: newJob("call")}, "echo", job{})
		case 2:
			name := newJob("ask")
			err = c.callLegacy(ctx, one, &history.Op{Kind: history.Ask, Job: name, Want: resultOf(name) + " " + history.AnswerOf(name)}, "ask", job{})
		default:
			count := 3 + random.IntN(12)
			err = c.callLegacy(ctx, one, &history.Op{Kind: history.Steps, Job: newJob("steps"), Count: count}, "steps", job{Count: count, Millis: 10 + random.IntN(150)})
		}
		if err != nil {
			_ = wait(ctx, 20*time.Millisecond)
		}
	}
	c.endSession(ctx, one)
}

// openSession opens a session. If that fails, it returns false after a pause.
func (c *cluster) openSession(ctx context.Context, one *legacyClient) bool {
	err := c.do(ctx, &history.Op{Client: one.name, Kind: history.OpenSession}, func(ctx context.Context, o *history.Op) error {
		err := one.open(ctx)
		o.Key = one.session
		return err
	})
	if err != nil {
		_ = wait(ctx, 20*time.Millisecond)
	}
	return err == nil
}

// endSession ends a session.
func (c *cluster) endSession(ctx context.Context, one *legacyClient) {
	_ = c.do(ctx, &history.Op{Client: one.name, Kind: history.EndSession, Key: one.session}, func(ctx context.Context, _ *history.Op) error { return one.end(ctx) })
}

// callLegacy calls a tool within a session. That a replica does not know the session is a fact
// about the session.
func (c *cluster) callLegacy(ctx context.Context, one *legacyClient, o *history.Op, tool string, j job) error {
	o.Client, j.Job = one.name, o.Job
	if o.Want == "" {
		o.Want = resultOf(o.Job)
	}
	if o.Kind != history.Shared {
		tool = []string{"work__", "old__"}[one.calls.Load()%2] + tool
	}
	err := c.do(ctx, o, func(ctx context.Context, o *history.Op) error {
		e := &exchange{tool: tool, job: j}
		err := one.callTool(ctx, e)
		o.Got, o.Events = e.result, e.steps
		return err
	})
	if errors.Is(err, errMissing) {
		o.Key, o.Kind = one.session, history.UseSession
	}
	return err
}

// dialModern returns a client of the revision 2026-07-28 that answers questions.
func (c *cluster) dialModern(ctx context.Context, own *http.Client, token string) (*client.Client, error) {
	return c.dialPath(ctx, "/mcp", own, token)
}

// dialPath is dialModern for another path of the replicas.
func (c *cluster) dialPath(ctx context.Context, path string, own *http.Client, token string) (*client.Client, error) {
	return dialURL(ctx, "http://"+c.front.address()+path, own, token)
}

func dialURL(ctx context.Context, url string, own *http.Client, token string) (*client.Client, error) {
	return client.Dial(ctx, url, &client.Options{
		Wire: client.Wire{Revision: mcp.Revision20260728}, Logger: slog.New(slog.DiscardHandler), NoCache: true,
		HTTP: client.HTTP{Client: own, Header: func(ctx context.Context) (http.Header, error) { return headerOf(ctx, token), nil }},
		Answers: client.Answers{Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			job := askedJob.FindStringSubmatch(q.Message)
			if job == nil {
				return nil, fmt.Errorf("the question %q names no job", q.Message)
			}
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: answerTo(job[1])}, nil
		}},
	})
}

var askedJob = regexp.MustCompile(`The answer for (\w+)\?`)

// answerTo returns the filled-in form of a job.
func answerTo(job string) json.RawMessage {
	content, _ := json.Marshal(reply{history.AnswerOf(job)})
	return content
}

// useListened lets tasks work of which the client only hears.
func (c *cluster) useListened(ctx context.Context, name string, own *http.Client, random *rand.Rand, until func() bool) {
	dialing, cancel := context.WithTimeout(ctx, opLimit)
	defer cancel()
	direct, err := dialURL(dialing, "http://"+c.gate.address(), own, ownToken)
	if err != nil {
		_ = wait(ctx, 20*time.Millisecond)
		return
	}
	defer direct.Close()
	one, err := c.dialModern(dialing, own, ownToken)
	if err != nil {
		_ = wait(ctx, 20*time.Millisecond)
		return
	}
	defer one.Close()
	for n := 3; n > 0 && !until(); n-- {
		if random.IntN(3) == 0 {
			c.useTask(ctx, one, nil, "http://"+c.front.address()+"/mcp", name, "old__task", history.Hosted, random, until)
			continue
		}
		tool := gateTasks[random.IntN(len(gateTasks))]
		c.useTask(ctx, direct, nil, "http://"+c.gate.address(), name, tool.name, tool.fate, random, until)
	}
}

// useModern calls tools and lets tasks work.
func (c *cluster) useModern(ctx context.Context, name string, own *http.Client, random *rand.Rand, until func() bool) {
	dialing, cancel := context.WithTimeout(ctx, opLimit)
	one, err := c.dialModern(dialing, own, ownToken)
	cancel()
	if err != nil {
		_ = wait(ctx, 20*time.Millisecond)
		return
	}
	defer one.Close()
	thief, err := c.dialModern(ctx, own, otherToken)
	if err != nil {
		return
	}
	defer thief.Close()
	direct, err := dialURL(ctx, "http://"+c.gate.address(), own, ownToken)
	if err != nil {
		return
	}
	defer direct.Close()
	for n := 3 + random.IntN(10); n > 0 && !until(); n-- {
		switch random.IntN(8) {
		case 0:
			err = c.callModern(ctx, one, &history.Op{Client: name, Kind: history.Call, Job: newJob("call")}, "work__echo")
		case 2:
			err = c.callModern(ctx, one, &history.Op{Client: name, Kind: history.Shared, Job: newJob("shared"), Count: random.IntN(1500)}, "shared__work")
		case 3, 4, 5:
			tool := gateTasks[random.IntN(len(gateTasks))]
			c.useTask(ctx, direct, nil, "http://"+c.gate.address(), name, tool.name, tool.fate, random, until)
		case 1:
			job := newJob("ask")
			err = c.callModern(ctx, one, &history.Op{Client: name, Kind: history.Ask, Job: job, Want: resultOf(job) + " " + history.AnswerOf(job)}, []string{"work__ask", "old__ask"}[random.IntN(2)])
		default:
			tool, fate := "work__task", history.Elsewhere
			if random.IntN(2) == 0 { // the replica makes the task, since the server speaks the other era
				tool, fate = "old__task", history.Hosted
			}
			c.useTask(ctx, one, thief, "http://"+c.front.address()+"/mcp", name, tool, fate, random, until)
		}
		if err != nil {
			_ = wait(ctx, 20*time.Millisecond)
		}
	}
}

func (c *cluster) callModern(ctx context.Context, one *client.Client, o *history.Op, tool string) error {
	if o.Want == "" {
		o.Want = resultOf(o.Job)
	}
	return c.do(ctx, o, func(ctx context.Context, o *history.Op) (err error) {
		o.Got, err = client.Call[string](ctx, one, tool, job{Job: o.Job, Millis: o.Count})
		return err
	})
}

// useTask starts a task at the URL of a client and follows it to its end: as two clients, of which
// one only polls, and one also answers and cancels; or as one that only listens. Another one is
// another user. fate is what becomes of the task when its process ends.
func (c *cluster) useTask(ctx context.Context, one, thief *client.Client, url, name, tool, fate string, random *rand.Rand, until func() bool) {
	kind := []string{"plain", "asks", "asks", "waits"}[random.IntN(4)]
	if fate == history.Hosted && kind == "waits" {
		kind = "plain" // without the store the call stays a call, which must end by itself
	}
	work := job{Job: newJob("task"), Kind: kind, Millis: random.IntN(800)}
	isHeard := strings.HasPrefix(name, "listener") || random.IntN(3) == 0
	if isHeard {
		work.Millis = random.IntN(12_000) // so that faults come during the work
	}
	arguments, err := json.Marshal(work)
	if err != nil {
		return
	}
	var task *client.Task
	created := &history.Op{Client: name, Kind: history.Create, Job: work.Job, Got: kind, Status: fate}
	if c.do(ctx, created, func(ctx context.Context, o *history.Op) error {
		var result *mcp.CallToolResult
		task, result, err = one.StartTool(ctx, mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err == nil && task == nil {
			err = fmt.Errorf("no task, but %v", result)
		}
		if err == nil {
			o.Key = task.ID()
		}
		return err
	}) != nil {
		return
	}
	if thief != nil && random.IntN(3) == 0 {
		_ = c.do(ctx, &history.Op{Client: name, Kind: history.Steal, Key: task.ID()}, func(ctx context.Context, o *history.Op) error {
			s, err := thief.Resume(task.ID()).State(ctx)
			if err == nil {
				o.Got = s.Status
			}
			return err
		})
	}
	if isHeard {
		l := &taskListener{cluster: c, name: name + "l", url: url, job: work.Job, kind: kind, task: task, isAnswered: map[string]bool{}}
		l.await(ctx, fate, random)
		_, _, _ = c.getTask(ctx, task, name, work.Job, kind) // its end stays
		return
	}
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() { c.followTask(following, task, name, work.Job, kind) })
	defer func() { stop(); follower.Wait() }()
	cancelAfter := -1
	if kind == "waits" || random.IntN(8) == 0 {
		cancelAfter = random.IntN(6)
	}
	for polls, begun := 0, time.Now(); ; polls++ {
		if polls == cancelAfter {
			_ = c.do(ctx, &history.Op{Client: name, Kind: history.Cancel, Key: task.ID(), Job: work.Job}, func(ctx context.Context, _ *history.Op) error { return task.Cancel(ctx) })
		}
		status, questions, err := c.getTask(ctx, task, name, work.Job, kind)
		if isFinal(status) || isUnknownTask(err) || polls > 400 {
			break
		}
		if len(questions) > 0 && random.IntN(3) > 0 {
			_ = c.answerTask(ctx, task, name, work.Job, questions) // the next poll asks again
		}
		if wait(ctx, time.Duration(20+random.IntN(150))*time.Millisecond) != nil {
			return
		}
		if cancelAfter < 0 && time.Since(begun) > patience || until() && kind == "waits" && polls > cancelAfter {
			cancelAfter = polls + 1
		}
	}
	_, _, _ = c.getTask(ctx, task, name, work.Job, kind) // its end stays
}

// followTask asks for the state of a task until its end.
func (c *cluster) followTask(ctx context.Context, task *client.Task, name, work, kind string) {
	for wait(ctx, 40*time.Millisecond) == nil {
		// Its own context: the end of the follower is no end of an operation.
		if status, _, _ := c.getTask(context.WithoutCancel(ctx), task, name+"b", work, kind); isFinal(status) {
			return
		}
	}
}

func isFinal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// getTask asks for the state of a task.
func (c *cluster) getTask(ctx context.Context, task *client.Task, name, work, kind string) (status string, questions map[string]mcp.InputRequest, err error) {
	err = c.do(ctx, &history.Op{Client: name, Kind: history.Get, Key: task.ID(), Job: work, Want: wantedResult(work, kind)}, func(ctx context.Context, o *history.Op) error {
		s, err := task.State(ctx)
		if err != nil {
			return err
		}
		status, questions = s.Status, s.Questions
		o.Status = s.Status
		if s.Result != nil {
			o.Got = textOf(s.Result)
		}
		if s.Err != nil {
			o.Got = s.Err.Error()
		}
		return nil
	})
	return status, questions, err
}

// wantedResult returns the result of a task of a kind.
func wantedResult(work, kind string) string {
	if kind == "asks" {
		return resultOf(work) + " " + history.AnswerOf(work)
	}
	return resultOf(work)
}

// textOf returns the text of a result.
func textOf(r *mcp.CallToolResult) (text string) {
	for _, part := range r.Content {
		text += part.Text
	}
	return text
}

// answerTask answers all open questions of a task.
func (c *cluster) answerTask(ctx context.Context, task *client.Task, name, work string, questions map[string]mcp.InputRequest) error {
	answers := map[string]json.RawMessage{}
	for key := range questions {
		answers[key], _ = json.Marshal(mcp.ElicitResult{Action: mcp.ElicitAccept, Content: answerTo(work)})
	}
	return c.do(ctx, &history.Op{Client: name, Kind: history.Answer, Key: task.ID(), Job: work}, func(ctx context.Context, _ *history.Op) error {
		return task.Answer(ctx, answers)
	})
}
