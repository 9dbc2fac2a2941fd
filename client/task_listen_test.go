package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// toldTask is a server with one task. The test sets the state that polls return, and the states
// that notifications tell.
type toldTask struct {
	feed
	began     time.Time
	listening atomic.Int32 // open subscriptions

	mu                 sync.Mutex
	state              string
	polls              []float64 // seconds since began
	updates, cancelled int
}

// Members of the task for each status.
const (
	working   = `"status":"working"`
	completed = `"status":"completed","result":{"content":[{"type":"text","text":"ok"}]}`
	asksForm  = `"status":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}`
)

// taskAt returns the task with these members, as of a number of seconds after the start.
func (s *toldTask) taskAt(seconds float64, members string) json.RawMessage {
	at := s.began.Add(time.Duration(seconds * float64(time.Second))).Format(time.RFC3339Nano)
	return json.RawMessage(fmt.Sprintf(`{"taskId":"1","createdAt":%q,"lastUpdatedAt":%q,"ttlMs":null,"pollIntervalMs":1000,%s}`, s.began.Format(time.RFC3339), at, members))
}

// setState waits until a number of seconds after the start, and sets the state that polls return.
func (s *toldTask) setState(seconds float64, members string) {
	s.sleepUntil(seconds)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = string(s.taskAt(seconds, members))
}

// tell sends a notification with the state as of a number of seconds after the start.
func (s *toldTask) tell(seconds float64, members string) {
	s.changes <- mcp.Notification{Method: "notifications/tasks", Params: s.taskAt(seconds, members)}
}

// change sets the state, and tells it.
func (s *toldTask) change(seconds float64, members string) {
	s.setState(seconds, members)
	s.tell(seconds, members)
}

// endStream ends the subscription.
func (s *toldTask) endStream(seconds float64) {
	s.sleepUntil(seconds)
	s.changes <- mcp.Notification{}
}

func (s *toldTask) sleepUntil(seconds float64) {
	time.Sleep(time.Until(s.began.Add(time.Duration(seconds * float64(time.Second)))))
}

func (s *toldTask) handlers() handlers {
	return handlers{
		mcp.MethodDiscover: returns(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
		mcp.MethodCallTool: func(context.Context, *mcp.Request) (*mcp.Result, error) {
			return &mcp.Result{Type: "task", Raw: s.taskAt(0, working)}, nil
		},
		mcp.MethodListen: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if got := param(req, "notifications"); got != `{"taskIds":["1"]}` {
				return nil, mcp.InvalidParams("filter %s", got)
			}
			s.listening.Add(1)
			defer s.listening.Add(-1)
			return s.listen(ctx, req)
		},
		"tasks/get": func(context.Context, *mcp.Request) (*mcp.Result, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.polls = append(s.polls, time.Since(s.began).Seconds())
			return raw(s.state), nil
		},
		"tasks/update": func(context.Context, *mcp.Request) (*mcp.Result, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.updates++
			s.state = string(s.taskAt(time.Since(s.began).Seconds(), working))
			return raw(`{}`), nil
		},
		"tasks/cancel": func(context.Context, *mcp.Request) (*mcp.Result, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cancelled++
			return raw(`{}`), nil
		},
	}
}

// A wait listens to a task that works, and polls slowly beneath. If notifications do not come, it
// polls at the server's interval.
func TestWaitListensToTask(t *testing.T) {
	refused := mcp.MethodNotFound(mcp.MethodListen)
	for name, test := range map[string]struct {
		grant    string
		refuse   error
		script   func(*toldTask)
		polls    []float64
		opened   int
		progress []string
	}{
		"the end is told": {
			script: func(s *toldTask) { s.change(30.5, completed) },
			polls:  []float64{1, 2, 12, 22, 30.5}, opened: 1,
		},
		"the end is lost": {
			script: func(s *toldTask) { s.setState(15, completed) },
			polls:  []float64{1, 2, 12, 22}, opened: 1,
		},
		"the end before the acknowledgement is lost": {
			script: func(s *toldTask) { s.setState(1.5, completed) },
			polls:  []float64{1, 2}, opened: 1,
		},
		"the end within the first interval": {
			script: func(s *toldTask) { s.setState(0.5, completed) },
			polls:  []float64{1}, opened: 0,
		},
		"refused": {
			refuse: refused,
			script: func(s *toldTask) { s.setState(4.5, completed) },
			polls:  []float64{1, 2, 3, 4, 5}, opened: 1,
		},
		"the task is not acknowledged": {
			grant:  `{"taskIds":["2"]}`,
			script: func(s *toldTask) { s.setState(4.5, completed) },
			polls:  []float64{1, 2, 3, 4, 5}, opened: 1,
		},
		"the stream ends soon": {
			script: func(s *toldTask) { s.endStream(5.5); s.setState(8, completed) },
			polls:  []float64{1, 2, 5.5, 6.5, 7.5, 8.5}, opened: 1,
		},
		"the stream ends late": {
			script: func(s *toldTask) { s.endStream(15); s.change(20, completed) },
			polls:  []float64{1, 2, 12, 15, 16, 20}, opened: 2,
		},
		"a question is told": {
			script: func(s *toldTask) { s.change(5.5, asksForm); s.change(9, completed) },
			polls:  []float64{1, 2, 5.5, 5.5, 9}, opened: 1,
		},
		"input is required without a question": {
			script: func(s *toldTask) { s.change(5.5, `"status":"input_required"`); s.change(9, completed) },
			polls:  []float64{1, 2, 5.5, 6.5, 7.5, 8.5, 9}, opened: 1,
		},
		"old states are told": {
			script: func(s *toldTask) {
				s.change(5, working+`,"statusMessage":"second"`)
				s.sleepUntil(6)
				s.tell(4, working+`,"statusMessage":"first"`)
				s.tell(3, completed)
				s.change(9, completed)
			},
			polls: []float64{1, 2, 9}, opened: 1, progress: []string{"second"},
		},
		"a told end is not shown by polls": {
			script: func(s *toldTask) {
				s.sleepUntil(5)
				s.tell(5, completed)
				s.sleepUntil(6.5)
				s.tell(6.5, working+`,"statusMessage":"late"`)
				s.setState(8.5, completed)
			},
			polls: []float64{1, 2, 5, 6, 7, 8, 9}, opened: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &toldTask{began: time.Now(), feed: feed{grant: test.grant, refuse: test.refuse, changes: make(chan mcp.Notification, 8)}}
				if s.grant == "" {
					s.grant = `{"taskIds":["1"]}`
				}
				s.setState(0, working)
				c := connect(t, extended{s.handlers()}, client.Options{Answers: client.Answers{Elicit: accept(`{}`)}})
				go test.script(s)
				var progress []string
				got, err := client.Call[string](t.Context(), c, "t", nil, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
					progress = append(progress, p.Message)
				}})
				if got != "ok" || err != nil || s.cancelled != 0 {
					t.Errorf("%q, %v, cancelled %d times", got, err, s.cancelled)
				}
				if !slices.Equal(s.polls, test.polls) || s.opened != test.opened {
					t.Errorf("polls at %v, want %v; %d subscriptions, want %d", s.polls, test.polls, s.opened, test.opened)
				}
				if !slices.Equal(progress, test.progress) {
					t.Errorf("progress %q, want %q", progress, test.progress)
				}
				synctest.Wait()
				if n := s.listening.Load(); n != 0 {
					t.Errorf("%d subscriptions are open after the wait", n)
				}
			})
		})
	}
}

// The end of its context ends the subscription of a wait, too.
func TestCancelledWaitStopsListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toldTask{began: time.Now(), feed: feed{grant: `{"taskIds":["1"]}`, changes: make(chan mcp.Notification, 1)}}
		s.setState(0, working)
		c := connect(t, extended{s.handlers()})
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		_, err := client.Call[string](ctx, c, "t", nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(s.began) != 7*time.Second || s.cancelled != 1 || s.opened != 1 {
			t.Errorf("%v after %v, cancelled %d times, %d subscriptions", err, time.Since(s.began), s.cancelled, s.opened)
		}
		synctest.Wait()
		if n := s.listening.Load(); n != 0 {
			t.Errorf("%d subscriptions are open after the wait", n)
		}
	})
}

// Over HTTP, too, a notification ends the wait for a task that the server wants to
// be polled rarely.
func TestWaitListensOverHTTP(t *testing.T) {
	t.Parallel()
	s := server.New("tasks", "1", nil)
	listened := make(chan struct{})
	release := sync.OnceFunc(func() { close(listened) })
	server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-listened
		return "done", nil
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, TTL: time.Hour, Poll: time.Hour}})
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				release()
			}
			return next.ServeMCP(ctx, req)
		})
	})
	web := httptest.NewServer(streamable.Handler(s, nil))
	defer web.Close()
	c, err := client.Dial(t.Context(), web.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	task, _, err := c.StartTool(t.Context(), mcp.CallToolParams{Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer release()
	if result, err := task.Wait(ctx); err != nil || result.Content[0].Text != "done" {
		t.Errorf("%+v, %v", result, err)
	}
}
