package server_test

import (
	"context"
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

// sharedKeys returns keys that lead to a network until the test ends.
func sharedKeys(t *testing.T) (*mcp.Keys, *replicatest.Net) {
	keys, n := new(mcp.Keys), replicatest.New()
	replica.Attach(keys, n)
	t.Cleanup(func() { replica.Attach(keys, nil) })
	return keys, n
}

// later returns the changes of a subscription after its acknowledgement.
func (s *subscription) later() string {
	synctest.Wait()
	return strings.Join(s.methods()[1:], ", ")
}

// A change at one replica reaches the subscriptions at the others, and not those of another
// server.
func TestChangesReachReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, _ := sharedKeys(t)
		one, two := offering(server.Options{Keys: keys}), offering(server.Options{Keys: keys})
		other := server.New("other", "1", &server.Options{Keys: keys, Declare: []server.Kind{server.KindTool}})
		for _, s := range []*server.Server{one, two, other} {
			defer s.Close()
		}
		time.Sleep(time.Second) // the changes of the beginning are told
		here, there, elsewhere := listen(t, one, "", all, &peer{}), listen(t, two, "", all, &peer{}), listen(t, other, "", all, &peer{})
		synctest.Wait()
		one.Updated("x://a")
		time.Sleep(time.Second)
		two.Updated("y://dir/file")
		time.Sleep(time.Second)
		add(t, one, "more")
		time.Sleep(time.Second)
		two.ListChanged(server.KindPrompt)
		time.Sleep(time.Second)
		for _, s := range []*subscription{here, there} {
			want(t, s.later(), "resources/updated x://a, resources/updated y://dir/file, tools/list_changed, prompts/list_changed")
		}
		want(t, elsewhere.later(), "")
	})
}

// A principal hears only of the items at other replicas that it may see, also if this one lacks
// them.
func TestHiddenChangesAtReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, _ := sharedKeys(t)
		options := server.Options{Keys: keys, Visible: func(_ context.Context, p mcp.Principal, item server.Item) bool {
			return item.Meta["example.com/for"] == nil || item.Meta["example.com/for"] == p.ID
		}}
		one, two := offering(options), offering(options)
		defer one.Close()
		defer two.Close()
		time.Sleep(time.Second)
		ann, bob := listen(t, two, "ann", all, &peer{}), listen(t, two, "bob", all, &peer{})
		synctest.Wait()
		server.Tool(one, "hers", "", none, server.ToolOptions{Meta: mcp.Meta{"example.com/for": "ann"}})
		time.Sleep(time.Second)
		want(t, ann.later(), "tools/list_changed")
		want(t, bob.later(), "")
	})
}

// After a loss of the connection, each subscription hears of everything that may have changed.
func TestChangesWithoutNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := sharedKeys(t)
		one, two := offering(server.Options{Keys: keys}), offering(server.Options{Keys: keys})
		defer one.Close()
		defer two.Close()
		time.Sleep(time.Second)
		n.SetCut(true)
		there := listen(t, two, "", `{"toolsListChanged":true,"resourceSubscriptions":["x://a","x://b"]}`, &peer{})
		synctest.Wait()
		one.Updated("x://a")
		time.Sleep(time.Second)
		want(t, there.later(), "")
		n.SetCut(false)
		time.Sleep(time.Second)
		got := strings.Split(there.later(), ", ")
		for _, change := range []string{"tools/list_changed", "resources/updated x://a", "resources/updated x://b"} {
			if !slices.Contains(got, change) {
				t.Errorf("%s is missing in %v", change, got)
			}
		}
	})
}

// A replica that has lost its connection tells the others of its changes when it is back, also if
// they have noticed no loss.
func TestChangesOfReplicaWithoutNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := sharedKeys(t)
		one, two := offering(server.Options{Keys: keys}), offering(server.Options{Keys: keys})
		defer one.Close()
		defer two.Close()
		time.Sleep(time.Second)
		there := listen(t, two, "", `{"resourceSubscriptions":["x://a","x://b"]}`, &peer{})
		synctest.Wait()
		n.SetCut(true)
		one.Updated("x://a")
		time.Sleep(time.Second)
		want(t, there.later(), "")
		n.Reconnect(0)
		time.Sleep(time.Second)
		got := strings.Split(there.later(), ", ")
		slices.Sort(got)                                                                     // the changes of one message have no order
		want(t, strings.Join(got, ", "), "resources/updated x://a, resources/updated x://b") // since messages before may be lost, too
	})
}

// Too many changes for a message become one of everything.
func TestManyChangesAtReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := sharedKeys(t)
		n.Payload = 1000
		one, two := offering(server.Options{Keys: keys}), offering(server.Options{Keys: keys})
		defer one.Close()
		defer two.Close()
		time.Sleep(time.Second)
		there := listen(t, two, "", all, &peer{})
		synctest.Wait()
		one.Updated("y://dir/" + strings.Repeat("x", 1000))
		time.Sleep(time.Second)
		got := strings.Split(there.later(), ", ")
		slices.Sort(got)
		want(t, strings.Join(got, ", "), "prompts/list_changed, resources/list_changed, resources/updated x://a, resources/updated y://dir/, tools/list_changed")
	})
}

// A task can be cancelled and followed at another replica than the one that runs it.
func TestTaskAtReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, _ := sharedKeys(t)
		memory, gone := new(tasks.Memory), new(atomic.Value)
		gone.Store("")
		ended, report := make(chan error, 1), make(chan string)
		start := func(name string) *server.Server {
			s := server.New("replica", "1", &server.Options{Keys: keys, Tasks: &replicaStore{Memory: memory, name: name, gone: gone}})
			server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
				for {
					select {
					case text := <-report:
						server.Progress(ctx, 1, 2, text)
					case <-ctx.Done():
						ended <- context.Cause(ctx)
						return "", ctx.Err()
					}
				}
			}, must)
			return s
		}
		one, two := start("one"), start("two")
		defer one.Close()
		defer two.Close()
		id := beginTask(t, one, as("ann", taskRequest("tools/call", `{"name":"work","arguments":{}}`))).TaskID
		p := &peer{}
		req := as("ann", taskRequest(mcp.MethodListen, `{"notifications":{"taskIds":["`+id+`"]}}`))
		req.Peer = p
		ctx, cancel := context.WithCancel(t.Context())
		listening := make(chan struct{})
		go func() {
			defer close(listening)
			_, _ = two.ServeMCP(ctx, req) // it ends with ctx
		}()
		synctest.Wait()
		report <- "half"
		time.Sleep(time.Second)
		if _, err := two.ServeMCP(t.Context(), as("ann", taskRequest("tasks/cancel", `{"taskId":"`+id+`"}`))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "cancelled the task") {
			t.Errorf("the run has ended with %v", err)
		}
		if task := getTask(t, one, "ann", id); task.Status != mcpwire.TaskCancelled {
			t.Errorf("%+v", task)
		}
		cancel()
		<-listening
		var states []string
		for _, change := range p.changes[1:] {
			var task mcpwire.Task
			if err := mcp.Decode(change.Params, &task); err != nil {
				t.Fatal(err)
			}
			states = append(states, task.Status+" "+task.StatusMessage)
		}
		want(t, strings.Join(slices.Compact(states), ", "), "working , working half, cancelled cancelled by the client")
	})
}

// A limit counts for all replicas together, and not for another server.
func TestLimitOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := sharedKeys(t)
		options := &server.Options{Keys: keys, Limit: server.Limit{PerSecond: 10, Burst: 20}}
		one, two, other := server.New("limited", "1", options), server.New("limited", "1", options), server.New("other", "1", options)
		for _, s := range []*server.Server{one, two, other} {
			add(t, s, "tool")
			defer s.Close()
		}
		// count calls the servers in turn for some time, and returns how many calls
		// were let through.
		count := func(d time.Duration, servers ...*server.Server) (calls int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				for _, s := range servers {
					res, err := s.ServeMCP(t.Context(), as("ann", request("tools/call", `{"name":"tool"}`)))
					if err != nil {
						t.Fatal(err)
					}
					if !res.Value.(*mcp.CallToolResult).IsError {
						calls++
					}
				}
			}
			return calls
		}
		count(10*time.Second, one, two) // the burst is over then
		if calls := count(20*time.Second, one, two); calls < 180 || calls > 220 {
			t.Errorf("%d calls in 20 seconds at 10 a second", calls)
		}
		if calls := count(time.Second, other); calls < 20 {
			t.Errorf("another server has let %d calls through, want its burst", calls)
		}
		n.SetCut(true)
		count(10*time.Second, one, two)
		n.SetCut(false)
		count(10*time.Second, one, two)
		if calls := count(20*time.Second, one, two); calls < 180 || calls > 220 {
			t.Errorf("after a loss of the network: %d calls in 20 seconds at 10 a second", calls)
		}
	})
}

// lateNet is a network that takes time to answer.
type lateNet struct {
	*replicatest.Net
	delay  time.Duration // of Receive
	faults atomic.Int32  // how often Receive fails
	joined atomic.Int32  // how many instances receive messages
	all    chan string   // receives the messages to all; may be nil
}

func (n *lateNet) Receive(instance string, h replica.Handler) (func(), error) {
	time.Sleep(n.delay)
	if n.faults.Add(-1) >= 0 {
		return nil, replica.ErrUnreachable
	}
	stop, err := n.Net.Receive(instance, h)
	n.joined.Add(1)
	return func() { n.joined.Add(-1); stop() }, err
}

func (n *lateNet) SendAll(message []byte) error {
	if n.all != nil {
		n.all <- string(message)
	}
	return n.Net.SendAll(message)
}

// A server does not wait for a network that does not answer, and hears of all changes when it
// does.
func TestServerWaitsForNoNetwork(t *testing.T) {
	for name, n := range map[string]*lateNet{"it hangs": {delay: 4 * time.Second}, "it fails": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := new(mcp.Keys)
				n.Net = replicatest.New()
				if n.delay == 0 {
					n.faults.Store(2)
				}
				replica.Attach(keys, n)
				defer replica.Attach(keys, nil)
				began := time.Now()
				s := offering(server.Options{Keys: keys})
				defer s.Close()
				if took := time.Since(began); took > time.Second {
					t.Errorf("the server was made in %v", took)
				}
				here := listen(t, s, "", `{"resourceSubscriptions":["x://a"]}`, &peer{})
				synctest.Wait()
				time.Sleep(10 * time.Second)
				want(t, here.later(), "resources/updated x://a") // it may have changed meanwhile
				n.delay = 0
				other := offering(server.Options{Keys: keys})
				defer other.Close()
				other.Updated("x://a")
				time.Sleep(time.Second)
				if got := here.later(); strings.Count(got, "x://a") != 2 {
					t.Error(got)
				}
			})
		})
	}
}

// Close tells the other replicas of changes that wait to be told together.
func TestLastChangesReachReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := new(mcp.Keys), &lateNet{Net: replicatest.New(), all: make(chan string, 10)}
		replica.Attach(keys, n)
		defer replica.Attach(keys, nil)
		s := offering(server.Options{Keys: keys})
		time.Sleep(time.Second)
		s.Updated("x://a")
		synctest.Wait()
		s.Updated("x://b")
		s.Close()
		last := ""
		for len(n.all) > 0 {
			last = <-n.all
		}
		if !strings.Contains(last, "x://b") {
			t.Errorf("the last message is %s", last)
		}
	})
}

// Close does not wait for a network that does not answer. The server receives nothing when the
// network answers later.
func TestCloseWaitsForNoNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, n := new(mcp.Keys), &lateNet{Net: replicatest.New(), delay: 4 * time.Second}
		replica.Attach(keys, n)
		defer replica.Attach(keys, nil)
		s := offering(server.Options{Keys: keys})
		began := time.Now()
		s.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("the server has closed after %v", took)
		}
		time.Sleep(10 * time.Second)
		if joined := n.joined.Load(); joined != 0 {
			t.Errorf("%d servers receive messages", joined)
		}
	})
}
