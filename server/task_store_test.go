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
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/server"
)

// failingStore is a store in memory whose Replace can fail.
type failingStore struct {
	tasks.Store
	failure atomic.Pointer[error] // nil if Replace works
	largest int                   // bytes of a result; 0 means no limit
}

func (s *failingStore) Replace(ctx context.Context, r *tasks.Record) error {
	if failure := s.failure.Load(); failure != nil {
		return *failure
	}
	if s.largest > 0 && len(r.Result) > s.largest {
		return tasks.ErrTooLarge
	}
	return s.Store.Replace(ctx, r)
}

// A result is stored when the store works again. A result that the store never takes fails the
// task.
func TestTaskEndsWhileStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failingStore{Store: new(tasks.Memory), largest: 1000}
		s := server.New("stored", "1", &server.Options{Tasks: store, Logger: quiet})
		defer s.Close()
		type input struct{ Text string }
		server.Tool(s, "say", "", func(_ context.Context, in input) (string, error) { return in.Text, nil },
			server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
		say := func(text string) string {
			return beginTask(t, s, as("ann", taskRequest("tools/call", `{"name":"say","arguments":{"Text":"`+text+`"}}`))).TaskID
		}

		full := errors.New("the disk is full")
		store.failure.Store(&full)
		id := say("hello")
		time.Sleep(10 * time.Minute)
		if task := getTask(t, s, "ann", id); task.Status != mcpwire.TaskWorking {
			t.Errorf("%+v", task)
		}
		store.failure.Store(nil)
		time.Sleep(time.Minute)
		if task := getTask(t, s, "ann", id); task.Status != mcpwire.TaskCompleted || !strings.Contains(string(task.Result), "hello") {
			t.Errorf("%+v", task)
		}

		id = say(strings.Repeat("x", 2000))
		time.Sleep(time.Minute)
		if task := getTask(t, s, "ann", id); task.Status != mcpwire.TaskFailed || !strings.Contains(string(task.Error), "larger than") {
			t.Errorf("%+v", task)
		}
	})
}
