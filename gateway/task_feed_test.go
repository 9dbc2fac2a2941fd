package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Fifty subscriptions of one principal are one at the upstream, which ends with the last of them.
func TestSubscriptionsToTasksAreShared(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		var clients []*taskClient
		for range 50 {
			clients = append(clients, listenAs(t, g, "ada", makeTask(t, g, "ada")))
		}
		pass()
		if open := s.open(); len(open) != 1 || len(open[0].ids) != 50 || s.most > 2 {
			t.Fatalf("%d subscriptions are open, %d at the most", len(open), s.most)
		}
		for i, c := range clients {
			s.change(fmt.Sprintf("task%d", i), "completed", 1)
			pass()
			wantSeen(t, c, "working 00, completed 01")
		}
		for _, c := range clients {
			c.cancel()
		}
		if pass(); len(s.open()) != 0 {
			t.Error("a subscription is left")
		}
	})
}

// Two principals never share a subscription.
func TestPrincipalsShareNoSubscription(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		ada, eve := makeTask(t, g, "ada"), makeTask(t, g, "eve")
		one, two := listenAs(t, g, "ada", ada, eve), listenAs(t, g, "eve", eve)
		pass()
		if open := s.open(); len(open) != 2 || len(open[0].ids) != 1 || len(open[1].ids) != 1 || open[0].ids[0] == open[1].ids[0] {
			t.Errorf("%d subscriptions are open", len(open))
		}
		s.change("task1", "completed", 1)
		pass()
		wantSeen(t, one, "working 00")
		wantSeen(t, two, "working 00, completed 01")
	})
}

// A client that leaves ends no subscription of others, whose tasks become fewer.
func TestLeavingClientEndsNoOther(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		ids := []string{makeTask(t, g, "ada"), makeTask(t, g, "ada"), makeTask(t, g, "ada")}
		one, all := listenAs(t, g, "ada", ids[0]), listenAs(t, g, "ada", ids...)
		pass()
		all.cancel()
		pass()
		if open := s.open(); len(open) != 1 || len(open[0].ids) != 1 {
			t.Errorf("%d subscriptions are open", len(open))
		}
		s.change("task0", "completed", 1)
		pass()
		wantSeen(t, one, "working 00, completed 01")
		wantSeen(t, all, "working 00, working 00, working 00")
	})
}

// A late client gets the current state of a task, also if it has ended.
func TestLateClientGetsCurrentState(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		listenAs(t, g, "ada", id)
		pass()
		s.change("task0", "input_required", 1)
		pass()
		late := listenAs(t, g, "ada", id)
		pass()
		wantSeen(t, late, "input_required 01")
		s.change("task0", "completed", 2)
		pass()
		wantSeen(t, late, "input_required 01, completed 02")
		latest := listenAs(t, g, "ada", id)
		pass()
		if wantSeen(t, latest, "completed 02"); !strings.Contains(latest.accepted, id) || s.opened != 1 {
			t.Errorf("acknowledged is %s after %d subscriptions", latest.accepted, s.opened)
		}
	})
}

// Clients hear of the changes that were made while the upstream had no subscription.
func TestSubscriptionToTasksOutlivesUpstream(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		one, two := listenAs(t, g, "ada", id), listenAs(t, g, "ada", id, makeTask(t, g, "ada"))
		pass()
		for _, l := range s.open() {
			l.end(errors.New("the server ends"))
		}
		synctest.Wait()
		s.change("task0", "input_required", 1) // nothing is open yet
		time.Sleep(time.Minute)
		wantSeen(t, one, "working 00, input_required 01")
		s.change("task0", "completed", 2)
		pass()
		wantSeen(t, one, "working 00, input_required 01, completed 02")
		if got := two.seen(); !strings.HasSuffix(got, "completed 02") {
			t.Error(got)
		}
	})
}

// An upstream that ends each subscription right after the acknowledgement is asked again after a
// pause, also if a client leaves meanwhile.
func TestEndedSubscriptionIsReplacedAfterPause(t *testing.T) {
	s := &taskSource{afterAck: func(l *sourceListen) { l.end(errors.New("the server ends the subscription")) }}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		one := listenAs(t, g, "ada", id)
		for range 10 {
			pass()
			listenAs(t, g, "ada", id).cancel()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.opened > 14 { // each client that comes has one at once
			t.Errorf("%d subscriptions were opened", s.opened)
		}
		if one.accepted == "" {
			t.Error("the client has no acknowledgement")
		}
	})
}

// A subscription that replaces another one may tell old states, and so may the answer to a look.
// No client gets an old state after a new one.
func TestOldStateFollowsNoNewOne(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		one := listenAs(t, g, "ada", id)
		pass()
		s.change("task0", "input_required", 5)
		pass()
		two := listenAs(t, g, "ada", makeTask(t, g, "ada"))
		pass()
		if s.opened != 2 {
			t.Fatalf("%d subscriptions were opened", s.opened)
		}
		s.open()[0].tell(stateAt("task0", "working", 3)) // the other subscription has told a newer one
		s.open()[0].tell(stateAt("task0", "working", 5)) // the time does not tell the order
		pass()
		wantSeen(t, one, "working 00, input_required 05")

		looks, answer := make(chan struct{}), make(chan struct{})
		s.answerLooks(func(id, task string) (string, error) {
			looks <- struct{}{}
			<-answer
			return task, nil
		})
		three := listenAs(t, g, "ada", id)
		<-looks // it has read the state
		s.change("task0", "input_required", 6)
		synctest.Wait()
		close(answer)
		pass()
		wantSeen(t, one, "working 00, input_required 05, input_required 06")
		wantSeen(t, three, "input_required 06")
		wantSeen(t, two, "working 00")
	})
}

// A server may refuse tasks that it does not know, in place of leaving them out. The tasks of
// other clients are followed all the same.
func TestRefusedTaskHarmsNoOther(t *testing.T) {
	s := &taskSource{refuse: func(ids []string) error {
		if slices.Contains(ids, "task1") {
			return mcp.Errorf(jsonrpc.CodeInvalidParams, "not these")
		}
		return nil
	}}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		good, bad := makeTask(t, g, "ada"), makeTask(t, g, "ada")
		first := listenAs(t, g, "ada", good)
		pass()
		refused := listenAs(t, g, "ada", bad)
		synctest.Wait()
		last := listenAs(t, g, "ada", makeTask(t, g, "ada"))
		pass()
		if refused.accepted == "" || strings.Contains(refused.accepted, bad) {
			t.Errorf("acknowledged is %q", refused.accepted)
		}
		s.change("task0", "completed", 1)
		s.change("task2", "completed", 2)
		pass()
		wantSeen(t, first, "working 00, completed 01")
		wantSeen(t, last, "working 00, completed 02")
		wantSeen(t, refused, "")
	})
}

// A server that ends refuses a subscription with an error of its own. The clients share one again
// afterwards.
func TestRestartKeepsSubscriptionShared(t *testing.T) {
	var isEnding atomic.Bool
	s := &taskSource{refuse: func([]string) error {
		if isEnding.Swap(false) {
			return mcp.Errorf(jsonrpc.CodeInternal, "the server is shutting down")
		}
		return nil
	}}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		one, two := listenAs(t, g, "ada", makeTask(t, g, "ada")), listenAs(t, g, "ada", makeTask(t, g, "ada"))
		pass()
		isEnding.Store(true)
		for _, l := range s.open() {
			l.end(errors.New("the server ends"))
		}
		time.Sleep(2 * time.Minute)
		if open := s.open(); isEnding.Load() || len(open) != 1 || len(open[0].ids) != 2 {
			t.Errorf("%d subscriptions are open", len(open))
		}
		s.change("task0", "completed", 1)
		s.change("task1", "completed", 1)
		pass()
		wantSeen(t, one, "working 00, completed 01")
		wantSeen(t, two, "working 00, completed 01")
	})
}

// A server that acknowledges no subscription to a task harms no client with other tasks.
func TestHangingSubscriptionHarmsNoOther(t *testing.T) {
	s := &taskSource{hang: func(ids []string) bool { return slices.Contains(ids, "task1") }}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		first := listenAs(t, g, "ada", makeTask(t, g, "ada"))
		pass()
		hanging := listenAs(t, g, "ada", makeTask(t, g, "ada"))
		pass()
		last := listenAs(t, g, "ada", makeTask(t, g, "ada"))
		time.Sleep(time.Minute)
		for i, id := range []string{"task0", "task1", "task2"} {
			s.change(id, "completed", 1+i)
		}
		pass()
		wantSeen(t, first, "working 00, completed 01")
		wantSeen(t, hanging, "")
		wantSeen(t, last, "working 00, completed 03")
	})
}

// A client that gets a subscription of its own gets no state again.
func TestStateIsToldOnceAfterRefusal(t *testing.T) {
	var hasForgotten atomic.Bool
	s := &taskSource{refuse: func(ids []string) error {
		if hasForgotten.Load() && slices.Contains(ids, "task1") {
			return mcp.Errorf(jsonrpc.CodeInvalidParams, "there is no such task")
		}
		return nil
	}}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		one, _ := listenAs(t, g, "ada", makeTask(t, g, "ada")), listenAs(t, g, "ada", makeTask(t, g, "ada"))
		pass()
		hasForgotten.Store(true)
		for _, l := range s.open() {
			l.end(errors.New("the server ends"))
		}
		time.Sleep(2 * time.Minute)
		s.change("task0", "completed", 1)
		pass()
		wantSeen(t, one, "working 00, completed 01")
	})
}

// A client that does not read delays no other.
func TestSilentClientDelaysNoOther(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		id := makeTask(t, g, "ada")
		silent, other := listenAs(t, g, "ada", id), listenAs(t, g, "ada", id)
		pass()
		silent.mu.Lock()
		silent.hold = make(chan struct{})
		silent.mu.Unlock()
		for second := range 5 {
			s.change("task0", "input_required", 1+second)
			synctest.Wait()
		}
		s.change("task0", "completed", 6)
		synctest.Wait()
		if got := other.seen(); !strings.HasSuffix(got, "completed 06") {
			t.Error(got)
		}
		close(silent.hold)
		pass()
		if got := silent.seen(); !strings.HasSuffix(got, "completed 06") {
			t.Error(got)
		}
	})
}

// More tasks than one subscription may have are followed by several.
func TestManyTasksNeedSeveralSubscriptions(t *testing.T) {
	s := &taskSource{}
	testFeed(t, s, func(t *testing.T, g *gateway.Gateway) {
		var clients []*taskClient
		for range 3 {
			ids := make([]string, 200)
			for i := range ids {
				ids[i] = makeTask(t, g, "ada")
			}
			clients = append(clients, listenAs(t, g, "ada", ids...))
		}
		pass()
		for _, l := range s.open() {
			if len(l.ids) > 256 {
				t.Errorf("a subscription has %d tasks", len(l.ids))
			}
		}
		s.change("task0", "completed", 1)
		s.change("task599", "completed", 1)
		pass()
		for _, c := range []*taskClient{clients[0], clients[2]} {
			if got := c.seen(); !strings.HasSuffix(got, "completed 01") {
				t.Error(got)
			}
		}
	})
}
