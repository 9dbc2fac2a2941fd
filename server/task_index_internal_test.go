package server

import (
	"strconv"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// addTaskListener adds a subscription to one task, as listen does.
func addTaskListener(s *Server, id string) *listener {
	l := &listener{tasks: []string{id}, extensions: []extensionFilter{{mcpwire.NotificationTask, []byte(`["` + id + `"]`)}},
		principal: mcp.Principal{ID: "ann"}, wakeups: make(chan struct{}, 1)}
	s.subscriptions.addListener(l)
	return l
}

// The change of a task costs nothing for the subscriptions to other tasks.
func TestTaskChangeAllocations(t *testing.T) {
	cost := func(others int) float64 {
		s := New("indexed", "1", nil)
		defer s.Close()
		own := addTaskListener(s, "own")
		for i := range others {
			addTaskListener(s, "other"+strconv.Itoa(i))
		}
		r := &tasks.Record{ID: "own", Owner: "ann", Status: tasks.Working}
		return testing.AllocsPerRun(200, func() {
			r.Version++
			s.announceTaskHere(r)
			if due, _ := own.takePending(r.Created); len(due.changes) != 1 {
				t.Fatalf("%d changes have arrived, want 1", len(due.changes))
			}
		})
	}
	if alone, among := cost(0), cost(5000); among > alone {
		t.Errorf("a change allocates %v times with 5,000 other subscriptions, and %v times alone", among, alone)
	}
}

// A subscription that has ended is in no index.
func TestTaskIndexForgetsListeners(t *testing.T) {
	s := New("indexed", "1", nil)
	defer s.Close()
	first, second := addTaskListener(s, "a"), addTaskListener(s, "a")
	s.subscriptions.remove(first)
	if got := s.subscriptions.listenerOfTask("a"); got != second {
		t.Errorf("the task is followed by %p, want %p", got, second)
	}
	s.subscriptions.remove(second)
	if n := len(s.subscriptions.byTask) + len(s.subscriptions.all); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
