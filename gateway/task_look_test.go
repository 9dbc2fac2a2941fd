package gateway_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// A look that fails is repeated. No subscription tells the state for which the feed looks.
func TestFailedLookIsRepeated(t *testing.T) {
	for name, failure := range map[string]error{
		"the server is busy":      mcp.Errorf(jsonrpc.CodeInternal, "busy"),
		"the server does not say": mcp.Errorf(-32099, "later"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &taskSource{}
			testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
				id := makeTask(t, g, "ada")
				c := listenAs(t, g, "ada", id)
				pass()
				var looks atomic.Int32
				s.answerLooks(func(_, task string) (string, error) {
					if looks.Add(1) <= 3 {
						return "", failure
					}
					return task, nil
				})
				s.change("task0", "input_required", 0) // the time does not tell the order
				time.Sleep(time.Minute)
				wantSeen(t, c, "working 00, input_required 00")
				if n := looks.Load(); n != 4 {
					t.Errorf("the feed has looked %d times", n)
				}
			})
		})
	}
}

// Failing looks at one task delay the look at no other one.
func TestFailedLookDelaysNoOther(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		s.answerLooks(func(id, task string) (string, error) {
			if id == "task0" {
				return "", mcp.Errorf(jsonrpc.CodeInternal, "busy")
			}
			return task, nil
		})
		bad, good := makeTask(t, g, "ada"), makeTask(t, g, "ada")
		listenAs(t, g, "ada", bad, good)
		time.Sleep(10 * time.Minute) // the pause between two looks at the bad task is long by now
		late := listenAs(t, g, "ada", good)
		pass()
		wantSeen(t, late, "working 00")
	})
}

// The end of a task reaches the client even if the server forgets the task at once.
func TestEndNeedsNoLook(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		c := listenAs(t, g, "ada", id)
		pass()
		s.answerLooks(func(string, string) (string, error) {
			return "", mcp.Errorf(jsonrpc.CodeInvalidParams, "there is no task with this id")
		})
		s.change("task0", "completed", 0) // the time does not tell the order
		pass()
		wantSeen(t, c, "working 00, completed 00")
	})
}

// A client gets one end of a task, though a later look finds another one.
func TestEndIsToldOnce(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		c := listenAs(t, g, "ada", id)
		pass()
		s.change("task0", "completed", 1)
		pass()
		s.answerLooks(func(string, string) (string, error) { return stateAt("task0", "completed", 2), nil })
		late := listenAs(t, g, "ada", id)
		pass()
		wantSeen(t, c, "working 00, completed 01")
		wantSeen(t, late, "completed 02")
	})
}

// A server that begins anew may give the id of a task again. A client that comes later follows the
// new task, and a client that knows the end of the old one hears no more.
func TestIDThatIsGivenAgain(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		c := listenAs(t, g, "ada", id)
		pass()
		s.change("task0", "completed", 1)
		pass()
		s.answerLooks(func(_, task string) (string, error) {
			return strings.Replace(task, `"createdAt":"2026-01-01T00:00:00Z"`, `"createdAt":"2026-01-01T00:00:02Z"`, 1), nil
		})
		s.change("task0", "working", 2)
		late := listenAs(t, g, "ada", id)
		pass()
		s.change("task0", "completed", 3)
		pass()
		wantSeen(t, c, "working 00, completed 01")
		wantSeen(t, late, "working 02, completed 03")
	})
}

// The answer to a look counts even if a state of unknown order arrives meanwhile. So a client sees
// a task that changes faster than the server answers.
func TestLooksKeepUpWithChanges(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		c := listenAs(t, g, "ada", id)
		pass()
		left := 6
		s.answerLooks(func(_, task string) (string, error) {
			if left--; left >= 0 {
				s.change("task0", fmt.Sprint("step", left), 0)
			}
			time.Sleep(time.Millisecond) // of the bubble's clock: the feed has the change, and the client the last state
			return task, nil
		})
		s.change("task0", "step6", 0)
		pass()
		wantSeen(t, c, "working 00, step6 00, step5 00, step4 00, step3 00, step2 00, step1 00, step0 00")
	})
}
