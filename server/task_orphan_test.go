package server_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// twoReplicas are two servers with one store. Each tool of the first works until the test ends,
// those of the second answer at once.
type twoReplicas struct {
	t      *testing.T
	net    *replicatest.Net
	stores [2]*replicaStore
	all    [2]*server.Server
	runs   atomic.Int32 // of the tools of the second
}

func startTwoReplicas(t *testing.T) *twoReplicas {
	keys, n := sharedKeys(t)
	return startTwoReplicasAt(t, n, server.Options{Keys: keys})
}

// startTwoReplicasAt starts the two at a network to which the keys of the options lead.
func startTwoReplicasAt(t *testing.T, n *replicatest.Net, o server.Options) *twoReplicas {
	two := &twoReplicas{t: t, net: n}
	memory, gone := new(tasks.Memory), new(atomic.Value)
	gone.Store("")
	for i, name := range []string{"one", "two"} {
		two.stores[i] = &replicaStore{Memory: memory, name: name, gone: gone}
		o.Tasks, o.Logger = two.stores[i], quiet
		s := server.New("replica", "1", &o)
		work := func(ctx context.Context, _ struct{}) (string, error) {
			if name == "two" {
				two.runs.Add(1)
				return "done", nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		}
		server.Tool(s, "once", "", work, must)
		server.Tool(s, "look", "", work, server.ToolOptions{Task: must.Task, Annotations: mcp.ReadOnly})
		two.all[i] = s
		t.Cleanup(func() { s.Close() })
	}
	return two
}

// follow begins a task of each tool at the first replica, and listens to them at the second. states
// returns the different states that arrived, by tool.
func (two *twoReplicas) follow(tools ...string) (states func() map[string]string) {
	two.t.Helper()
	return two.listen(two.begin(tools...))
}

// begin begins a task of each tool at the first replica. It returns the tools by the ids.
func (two *twoReplicas) begin(tools ...string) map[string]string {
	two.t.Helper()
	ids := map[string]string{}
	for _, tool := range tools {
		ids[beginTask(two.t, two.all[0], as("ann", taskRequest("tools/call", `{"name":"`+tool+`","arguments":{}}`))).TaskID] = tool
	}
	return ids
}

// listen listens to tasks at the second replica, as a client with scopes.
func (two *twoReplicas) listen(ids map[string]string, scopes ...string) (states func() map[string]string) {
	var quoted []string
	for id := range ids {
		quoted = append(quoted, `"`+id+`"`)
	}
	p := &peer{}
	req := as("ann", taskRequest(mcp.MethodListen, `{"notifications":{"taskIds":[`+strings.Join(quoted, ",")+`]}}`))
	req.Peer, req.Principal.Scopes = p, scopes
	ctx, cancel := context.WithCancel(two.t.Context())
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		_, _ = two.all[1].ServeMCP(ctx, req) // it ends with ctx
	}()
	two.t.Cleanup(func() { cancel(); <-listening })
	return func() map[string]string {
		synctest.Wait()
		seen := map[string][]string{}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, change := range p.changes[1:] {
			var task mcpwire.Task
			if err := mcp.Decode(change.Params, &task); err != nil {
				two.t.Fatal(err)
			}
			seen[ids[task.TaskID]] = append(seen[ids[task.TaskID]], task.Status)
		}
		joined := map[string]string{}
		for tool, all := range seen {
			joined[tool] = strings.Join(slices.Compact(all), " ")
		}
		return joined
	}
}

// loseFirst makes the first replica count as gone, and the second one notice.
func (two *twoReplicas) loseFirst() {
	two.stores[0].gone.Store("one")
	two.net.ReportGone()
	synctest.Wait()
}

// A client that only listens hears what becomes of its tasks after the end of the process that runs
// them: a task fails, or runs again and ends.
func TestListenerHearsOfLostReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		states := two.follow("once", "look")
		want(t, states()["once"], "working")
		two.loseFirst()
		got := states()
		want(t, got["once"], "working failed")
		want(t, got["look"], "working completed")
		if runs := two.runs.Load(); runs != 1 {
			t.Errorf("%d runs, want 1", runs)
		}
	})
}

// A replica that cannot read the store when another one is gone takes the tasks over later.
func TestListenerHearsOfLostReplicaWhileStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		states := two.follow("once", "look")
		synctest.Wait()
		two.stores[1].away.Store(true)
		two.loseFirst()
		time.Sleep(10 * time.Second)
		want(t, states()["once"], "working")
		two.stores[1].away.Store(false)
		time.Sleep(2 * time.Second)
		want(t, states()["once"], "working failed")
		want(t, states()["look"], "working completed")
	})
}

// A takeover whose acknowledgement is missing is done again for a client that only listens.
func TestListenerHearsOfTakeoverWithoutAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		states := two.follow("look")
		synctest.Wait()
		two.stores[1].silent.Store(true)
		two.loseFirst()
		time.Sleep(5 * time.Second)
		want(t, states()["look"], "working completed")
	})
}

// A server that closes leaves its tasks to the others, which do not wait for a request about them.
func TestListenerHearsOfClosedReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		two.stores[0].leaves, two.stores[1].leaves = true, true
		states := two.follow("once", "look")
		synctest.Wait()
		if err := two.all[0].Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		want(t, states()["once"], "working failed")
		want(t, states()["look"], "working completed")
	})
}

// A replica takes over many tasks of a lost one at once. It asks about once for each process
// whether that is gone.
func TestManyOrphansAreTakenOverInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, subscriptions = 240, 4
		two := startTwoReplicas(t)
		for range subscriptions {
			two.follow(slices.Repeat([]string{"once"}, each)...)
		}
		synctest.Wait()
		store := two.stores[1]
		store.delay.Store(int64(10 * time.Millisecond))
		before := store.asked.Load()
		two.net.ReportGone() // another replica
		time.Sleep(2 * time.Second)
		if asked := store.asked.Load() - before; asked == 0 || asked > 16 {
			t.Errorf("the store was asked %d times whether the first replica is gone", asked)
		}
		two.loseFirst()
		time.Sleep(5 * time.Second)
		all, err := store.List(t.Context(), "ann")
		if err != nil || len(all) != each*subscriptions {
			t.Fatalf("%d tasks, %v", len(all), err)
		}
		if i := slices.IndexFunc(all, func(r *tasks.Record) bool { return r.Status != tasks.Failed }); i >= 0 {
			t.Errorf("a task is %s", all[i].Status)
		}
	})
}

// A replica hears of a departure while it looks for the tasks of another one, and the store has
// said already that the process is there.
func TestDepartureDuringSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		states := two.follow(slices.Repeat([]string{"once"}, 32)...) // two rounds of looks
		synctest.Wait()
		two.stores[1].delay.Store(int64(time.Second))
		two.net.ReportGone()
		time.Sleep(2500 * time.Millisecond) // in the second round
		two.loseFirst()
		time.Sleep(20 * time.Second)
		want(t, states()["once"], "working failed")
	})
}

// A task is taken over for a client that may still see it, whoever else listens to it.
func TestOrphanIsTakenOverForWhoSeesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hidden atomic.Bool
		keys, n := sharedKeys(t)
		two := startTwoReplicasAt(t, n, server.Options{Keys: keys, Visible: func(_ context.Context, p mcp.Principal, _ server.Item) bool {
			if hidden.Load() && p.HasScopes("panics") {
				panic("not visible")
			}
			return !hidden.Load() || p.HasScopes("all")
		}})
		ids := two.begin("once")
		for range 8 {
			two.listen(ids)
			two.listen(ids, "panics")
		}
		states := two.listen(ids, "all")
		synctest.Wait()
		hidden.Store(true)
		two.loseFirst()
		want(t, states()["once"], "working failed")
	})
}

// A server looks for the tasks of lost replicas although its network receives no messages.
func TestListenerHearsOfLostReplicaWithoutMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := new(mcp.Keys), &lateNet{Net: replicatest.New()}
		n.faults.Store(1 << 20)
		replica.Attach(keys, n)
		defer replica.Attach(keys, nil)
		two := startTwoReplicasAt(t, n.Net, server.Options{Keys: keys})
		states := two.follow("once")
		synctest.Wait()
		two.loseFirst()
		want(t, states()["once"], "working failed")
	})
}

// A task that cannot be read does not hold up the others.
func TestUnreadableTaskHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		ids := two.begin(slices.Repeat([]string{"once"}, 40)...)
		two.listen(ids)
		synctest.Wait()
		for id := range ids {
			two.stores[1].torn.Store(id)
			break
		}
		two.loseFirst()
		all, err := two.stores[1].List(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(r *tasks.Record) bool { return r.Status != tasks.Failed })
		if len(all) != len(ids)-1 {
			t.Errorf("%d of %d tasks were taken over", len(all), len(ids))
		}
	})
}

// A server does not ask a store again and again that is closed.
func TestClosedStoreIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := startTwoReplicas(t)
		two.follow("once")
		synctest.Wait()
		store := two.stores[1]
		store.closed.Store(true)
		two.loseFirst()
		before := store.loads.Load()
		time.Sleep(10 * time.Second)
		if again := store.loads.Load() - before; again != 0 {
			t.Errorf("the store was asked %d times", again)
		}
	})
}
