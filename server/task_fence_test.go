package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// replicaStore is the part of one process of a store that several share.
type replicaStore struct {
	*tasks.Memory
	name   string
	gone   *atomic.Value // the name of the process that counts as gone
	silent atomic.Bool   // the next change is stored and not acknowledged
	away   atomic.Bool   // records cannot be read
	leaves bool          // a server that closes leaves its tasks to others
	delay  atomic.Int64  // of each answer, in nanoseconds
	asked  atomic.Int64  // how often it was asked whether a process is gone
	loads  atomic.Int64  // how often it was asked for a record
	closed atomic.Bool
	torn   atomic.Value // the id of a record that cannot be read
}

func (s *replicaStore) Runner() string { return s.name }

// wait waits as long as an answer takes.
func (s *replicaStore) wait() { time.Sleep(time.Duration(s.delay.Load())) }

func (s *replicaStore) IsGone(runner string) bool {
	s.asked.Add(1)
	s.wait()
	return runner == s.gone.Load() || s.leaves && runner == tasks.NoRunner
}

func (s *replicaStore) Load(ctx context.Context, id string) (*tasks.Record, error) {
	s.loads.Add(1)
	switch s.wait(); {
	case s.closed.Load():
		return nil, tasks.ErrClosed
	case s.away.Load():
		return nil, errors.New("the store is away")
	case id == s.torn.Load():
		return nil, errors.New("the record cannot be read")
	}
	return s.Memory.Load(ctx, id)
}

func (s *replicaStore) Create(ctx context.Context, r *tasks.Record, most int) error {
	r.Runner = s.name
	return s.Memory.Create(ctx, r, most)
}

func (s *replicaStore) Replace(ctx context.Context, next *tasks.Record) error {
	s.wait()
	err := s.Memory.Replace(ctx, next)
	if s.silent.Swap(false) {
		return errors.New("the acknowledgement is missing")
	}
	return err
}

// A replica that others take for gone still works: whatever its run stores then does not count,
// neither while the other replica runs the task nor after that has ended.
func TestReplacedRunStoresNothing(t *testing.T) {
	t.Parallel()
	memory, gone := new(tasks.Memory), new(atomic.Value)
	gone.Store("")
	goOn := map[string]chan string{"a": make(chan string), "b": make(chan string)}
	start := func(name string) *server.Server {
		s := server.New("fenced", "1", &server.Options{Tasks: &replicaStore{Memory: memory, name: name, gone: gone}})
		t.Cleanup(func() { s.Close() })
		server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
			for what := range goOn[name] {
				switch what {
				case "report":
					server.Progress(ctx, 1, 2, "half of "+name)
				case "ask":
					return server.Ask[string](ctx, "name", "Who?")
				default:
					return "done by " + name, nil
				}
			}
			return "", errors.New("not told what to do")
		}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}, Annotations: mcp.ReadOnly})
		return s
	}
	a, b := start("a"), start("b")
	for _, late := range []string{"report", "ask", "finish"} {
		gone.Store("")
		id := beginTask(t, a, as("ann", taskRequest("tools/call", `{"name":"work","arguments":{}}`))).TaskID
		gone.Store("a")
		if taken := getTask(t, b, "ann", id); taken.Status != mcpwire.TaskWorking {
			t.Fatalf("%+v", taken)
		}
		goOn["a"] <- late
		if late == "report" {
			goOn["a"] <- "finish"
		}
		goOn["b"] <- "report"
		polltest.Until(t, "the report of b", func() bool {
			now := getTask(t, b, "ann", id)
			if now.Status != mcpwire.TaskWorking || now.StatusMessage == "half of a" {
				t.Fatalf("after %s of a: %+v", late, now)
			}
			return now.StatusMessage == "half of b"
		})
		goOn["b"] <- "finish"
		polltest.Until(t, "the end", func() bool { return getTask(t, b, "ann", id).Status == mcpwire.TaskCompleted })
		if end := string(getTask(t, a, "ann", id).Result); !strings.Contains(end, "done by b") {
			t.Errorf("after %s of a, the end is %s", late, end)
		}
	}
}

// The function of a run that another replica has replaced learns that at its next report.
func TestReplacedRunIsCancelled(t *testing.T) {
	t.Parallel()
	memory, gone := new(tasks.Memory), new(atomic.Value)
	gone.Store("")
	cause := make(chan error, 1)
	goOn := make(chan struct{})
	start := func(name string) *server.Server {
		s := server.New("fenced", "1", &server.Options{Tasks: &replicaStore{Memory: memory, name: name, gone: gone}})
		t.Cleanup(func() { s.Close() })
		server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
			if name == "a" {
				<-goOn
				server.Progress(ctx, 1, 2, "half")
				<-ctx.Done()
				cause <- context.Cause(ctx)
			}
			return "done", nil
		}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}, Annotations: mcp.ReadOnly})
		return s
	}
	a, b := start("a"), start("b")
	id := beginTask(t, a, as("ann", taskRequest("tools/call", `{"name":"work","arguments":{}}`))).TaskID
	gone.Store("a")
	getTask(t, b, "ann", id)
	close(goOn)
	select {
	case err := <-cause:
		if err == nil || !strings.Contains(err.Error(), "taken the task over") {
			t.Error(err)
		}
	case <-time.After(polltest.Limit):
		t.Error("the function goes on")
	}
}

// A task whose change was stored without an acknowledgement runs all the same: after an answer,
// after a takeover, and once.
func TestRunAfterMissingAcknowledgement(t *testing.T) {
	t.Parallel()
	memory, gone := new(tasks.Memory), new(atomic.Value)
	gone.Store("")
	var runs atomic.Int32
	block := make(chan struct{})
	start := func(name string) (*server.Server, *replicaStore) {
		store := &replicaStore{Memory: memory, name: name, gone: gone}
		s := server.New("fenced", "1", &server.Options{Tasks: store})
		t.Cleanup(func() { s.Close() })
		server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
			answer, err := server.Ask[string](ctx, "name", "Who?")
			if err == nil {
				runs.Add(1)
			}
			return "Hello, " + answer, err
		}, must)
		server.Tool(s, "look", "", func(context.Context, struct{}) (string, error) {
			if name == "a" {
				<-block
			}
			runs.Add(1)
			return "done", nil
		}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}, Annotations: mcp.ReadOnly})
		return s, store
	}
	a, _ := start("a")
	b, store := start("b")
	defer close(block)

	id := beginTask(t, b, as("ann", taskRequest("tools/call", `{"name":"ask","arguments":{}}`))).TaskID
	polltest.Until(t, "the question", func() bool { return getTask(t, b, "ann", id).Status == mcpwire.TaskInputRequired })
	store.silent.Store(true)
	update := as("ann", taskRequest("tasks/update", `{"taskId":"`+id+`","inputResponses":{"name#1":{"action":"accept","content":{"value":"Ann"}}}}`))
	if _, err := b.ServeMCP(t.Context(), update); err == nil {
		t.Fatal("the answer was acknowledged")
	}
	if getTask(t, a, "ann", id).Status != mcpwire.TaskWorking || runs.Load() != 0 {
		t.Error("another replica runs the task")
	}
	polltest.Until(t, "the end", func() bool { return getTask(t, b, "ann", id).Status == mcpwire.TaskCompleted })
	if n := runs.Swap(0); n != 1 {
		t.Errorf("%d runs with the answer", n)
	}

	id = beginTask(t, a, as("ann", taskRequest("tools/call", `{"name":"look","arguments":{}}`))).TaskID
	gone.Store("a")
	store.silent.Store(true)
	if _, err := b.ServeMCP(t.Context(), as("ann", taskRequest("tasks/get", `{"taskId":"`+id+`"}`))); err == nil {
		t.Fatal("the takeover was acknowledged")
	}
	polltest.Until(t, "the end", func() bool { return getTask(t, b, "ann", id).Status == mcpwire.TaskCompleted })
	if n := runs.Load(); n != 1 {
		t.Errorf("%d runs after the takeover", n)
	}
}

// A question whose storing was not acknowledged keeps its key.
func TestQuestionAfterMissingAcknowledgement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := new(atomic.Value)
		gone.Store("")
		store := &replicaStore{Memory: new(tasks.Memory), name: "a", gone: gone}
		s := server.New("fenced", "1", &server.Options{Tasks: store})
		defer s.Close()
		server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
			store.silent.Store(true)
			return server.Ask[string](ctx, "name", "Who?")
		}, must)
		id := beginTask(t, s, as("ann", taskRequest("tools/call", `{"name":"ask","arguments":{}}`))).TaskID
		time.Sleep(time.Second) // of the bubble, until after the second try
		if now := about(getTask(t, s, "ann", id)); now != "input_required name#1" {
			t.Error(now)
		}
		cancel := as("ann", taskRequest("tasks/cancel", `{"taskId":"`+id+`"}`))
		if _, err := s.ServeMCP(t.Context(), cancel); err != nil {
			t.Error(err)
		}
	})
}
