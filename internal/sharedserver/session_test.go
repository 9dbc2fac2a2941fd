package sharedserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/mcp"
	mcpserver "github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// sessionDialer dials a server that opens sessions or not, and counts the dials.
type sessionDialer struct {
	transport.Dialer
	hasSession atomic.Bool
	dials      atomic.Int64
	onDial     func() // called at each dial; may be nil
}

func (d *sessionDialer) Dial(ctx context.Context, in mcp.Inbound, o transport.ClientOptions) (mcp.Transport, error) {
	if d.dials.Add(1); d.onDial != nil {
		d.onDial()
	}
	made, err := d.Dialer.Dial(ctx, in, o)
	return sessionTransport{made, d.hasSession.Load()}, err
}

type sessionTransport struct {
	mcp.Transport
	hasSession bool
}

func (t sessionTransport) HasSession() bool { return t.hasSession }

// A server without sessions is reached by each replica, also while the cluster cannot be reached.
// As soon as it opens sessions, one replica has one for all.
func TestSessionTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		to := &sessionDialer{Dialer: memory.Dialer(s, transport.ServerOptions{Logger: discard})}
		a, _, _ := join(t, n, s)
		b, _, redialed := join(t, n, s)
		first, second := a.SessionTarget("kv", "one", to), b.SessionTarget("kv", "one", to)
		for _, cut := range []bool{false, true} {
			n.SetCut(cut)
			one, two := dial(t, first), dial(t, second)
			if first.HasOwner() || second.HasOwner() || first.Owner() != "" || second.Owner() != "" || !first.IsOwn() || !second.IsOwn() {
				t.Errorf("cut %v: owners %q and %q", cut, first.Owner(), second.Owner())
			}
			one.Close()
			two.Close()
		}
		if n := to.dials.Load(); n != 4 {
			t.Errorf("%d dials, want 4", n)
		}
		n.SetCut(false)
		to.hasSession.Store(true)
		one, two := dial(t, first), dial(t, second)
		if !first.HasOwner() || !second.HasOwner() || first.Owner() != "this replica" || second.Owner() != describeInstance(a.instance) {
			t.Errorf("owners %q and %q", first.Owner(), second.Owner())
		}
		if n := to.dials.Load(); n != 7 { // both have expected no session
			t.Errorf("%d dials, want 7", n)
		}
		two.Close()
		one.Close()
		synctest.Wait()
		if len(redialed) > 0 {
			t.Error("a connection that was closed in an orderly way was dialed again")
		}
		b.Close()
		a.Close()
		s.Close()
	})
}

// If the server opens a session here, and the replica with the lease says that it opens none, the
// dial fails soon and does not open one session after the other. It works when that lease has
// ended.
func TestOwnerHasNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		to := &sessionDialer{Dialer: memory.Dialer(s, transport.ServerOptions{Logger: discard})}
		to.hasSession.Store(true)
		to.onDial = func() {
			if to.dials.Load() > 5 {
				t.Error("the server gets one session after the other")
				to.hasSession.Store(false)
			}
		}
		a, _, _ := join(t, n, s)
		b, _, redialed := join(t, n, s)
		here := a.server("kv", "one")
		here.hasNoSession.Store(true)
		n.Replace(here.key(), []byte(a.instance+" which could not release it"), replica.LeaseLife)
		target := b.SessionTarget("kv", "one", to)
		_, err := target.Dial(t.Context(), inbound{make(chan error, 1)}, transport.ClientOptions{Logger: discard})
		if !HasNoOwner(err) || to.dials.Load() != 1 {
			t.Errorf("%v after %d dials", err, to.dials.Load())
		}
		<-redialed
		time.Sleep(replica.LeaseLife)
		c := dial(t, target)
		if !target.HasOwner() || target.Owner() != "this replica" {
			t.Errorf("the owner is %q", target.Owner())
		}
		c.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// While a replica takes the lease, another one waits, whatever the last dial has found. A session
// counts although another dial has found none meanwhile.
func TestSessionBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		to := &sessionDialer{Dialer: memory.Dialer(s, transport.ServerOptions{Logger: discard})}
		to.hasSession.Store(true)
		a, _, _ := join(t, n, s)
		b, _, _ := join(t, n, s)
		here, there := a.server("kv", "one"), b.server("kv", "one")
		here.hasNoSession.Store(true)
		here.taking++
		if _, answer, err := here.handler(); string(answer) != string(answerStarting) || err != nil {
			t.Errorf("while the lease is being taken: %q, %v", answer, err)
		}
		here.taking--
		here.hasNoSession.Store(false)
		first, second := a.SessionTarget("kv", "one", to), b.SessionTarget("kv", "one", to)
		to.onDial = func() { here.hasNoSession.Store(true) }
		one := dial(t, first)
		if !first.HasOwner() {
			t.Error("the replica that has the session says that it has none")
		}
		a.opts.Serve = func(string) (mcp.Handler, error) { there.hasNoSession.Store(true); return s, nil }
		two := dial(t, second)
		if !second.HasOwner() {
			t.Error("the replica that uses the session says that there is none")
		}
		two.Close()
		one.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// Replicas with different entries of a server have a session each.
func TestSessionsOfEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		to := &sessionDialer{Dialer: memory.Dialer(s, transport.ServerOptions{Logger: discard})}
		to.hasSession.Store(true)
		a, _, _ := join(t, n, s)
		b, _, _ := join(t, n, s)
		c, _, _ := join(t, n, s)
		first, second, third := a.SessionTarget("kv", "one", to), b.SessionTarget("kv", "two", to), c.SessionTarget("kv", "one", to)
		one, two, three := dial(t, first), dial(t, second), dial(t, third)
		if first.Owner() != "this replica" || second.Owner() != "this replica" || third.Owner() != describeInstance(a.instance) {
			t.Errorf("owners %q, %q and %q", first.Owner(), second.Owner(), third.Owner())
		}
		for _, conn := range []*client.Client{three, two, one} {
			conn.Close()
		}
		for _, p := range []*Pool{c, b, a} {
			p.Close()
		}
		s.Close()
	})
}

// While the cluster cannot be reached, a session of all replicas cannot be used: a dial fails at
// once. It can be opened again after that.
func TestSessionWithoutCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		to := &sessionDialer{Dialer: memory.Dialer(s, transport.ServerOptions{Logger: discard})}
		to.hasSession.Store(true)
		a, _, redialed := join(t, n, s)
		target := a.SessionTarget("kv", "one", to)
		down := make(chan error, 1)
		made, err := target.Dial(t.Context(), inbound{down}, transport.ClientOptions{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		n.SetCut(true)
		if err := <-down; !strings.Contains(fmt.Sprint(err), "lost its lease") {
			t.Errorf("down with %v", err)
		}
		made.Close()
		began := time.Now()
		if _, err := target.Dial(t.Context(), inbound{down}, transport.ClientOptions{Logger: discard}); !errors.Is(err, replica.ErrUnreachable) || time.Since(began) > time.Second {
			t.Errorf("a dial: %v after %v", err, time.Since(began))
		}
		n.SetCut(false)
		<-redialed
		again := dial(t, target)
		if _, err := client.Call[string](t.Context(), again, "repeat", map[string]int{"times": 1}); err != nil || target.Owner() != "this replica" {
			t.Errorf("a call: %v; owner %q", err, target.Owner())
		}
		again.Close()
		a.Close()
		s.Close()
	})
}

// The error of a call says that the session is lost if the owner has ended or has lost its lease,
// and otherwise only how the connection was lost.
func TestLossOfSession(t *testing.T) {
	for _, test := range []struct {
		what   string
		lose   func(n *replicatest.Net, owner, other *Pool, own *client.Client)
		isLost bool
		cause  string
	}{
		{"the owner is killed", func(n *replicatest.Net, owner, _ *Pool, _ *client.Client) { n.Remove(owner.instance) }, true, "has ended"},
		{"the owner releases the session", func(_ *replicatest.Net, _, _ *Pool, own *client.Client) { own.Close() }, true, "runs the server no more"},
		{"the owner is stopped, and its lease ends", func(n *replicatest.Net, owner, other *Pool, _ *client.Client) {
			n.SetSilent(owner.instance, true)
			n.SetSilent(other.instance, true) // the owner says nothing either
			n.Replace(owner.server("kv", "one").key(), []byte("another one"), time.Hour)
		}, true, "does not answer"},
		{"the owner does not answer", func(n *replicatest.Net, owner, _ *Pool, _ *client.Client) { n.SetSilent(owner.instance, true) }, false, "does not answer"},
		{"this replica is cut off", func(n *replicatest.Net, _, _ *Pool, _ *client.Client) { n.SetCut(true) }, false, replica.ErrUnreachable.Error()},
		{"the owner ends the connection", func(_ *replicatest.Net, owner, _ *Pool, _ *client.Client) {
			owner.server("kv", "one").conns[0].fail(errors.New("a part is missing"), true)
		}, false, "has ended the connection: a part is missing"},
	} {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, s := replicatest.New(), newServer()
				a, _, _ := join(t, n, s)
				b, _, _ := join(t, n, s)
				to := memory.Dialer(s, transport.ServerOptions{Logger: discard})
				first, second := dial(t, a.SessionTarget("kv", "one", to)), dial(t, b.SessionTarget("kv", "one", to))
				ended := make(chan error, 1)
				go func() {
					_, err := client.Call[string](t.Context(), second, "wait", nil)
					ended <- err
				}()
				synctest.Wait()
				test.lose(n, a, b, first)
				err := fmt.Sprint(<-ended)
				if isLost := strings.Contains(err, "is lost"); isLost != test.isLost || !strings.Contains(err, test.cause) || !strings.Contains(err, "may have had its effect") {
					t.Errorf("the call: %s", err)
				}
				second.Close()
				first.Close()
				b.Close()
				a.Close()
				s.Close()
			})
		})
	}
}

// Log messages reach the call that they belong to, also if calls of another replica log at the same
// time. A client does not see how.
func TestLogsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, lines = 5, 20
		n, s := replicatest.New(), newServer()
		mcpserver.Tool(s, "log", "Writes log messages.", func(ctx context.Context, in struct {
			Name string `json:"name"`
		}) (string, error) {
			for range lines {
				time.Sleep(time.Millisecond)
				mcpserver.Log(ctx).Info(in.Name)
			}
			return in.Name, nil
		})
		a, own, _ := join(t, n, s)
		b, other, _ := join(t, n, s)
		first, second := dial(t, own), dial(t, other)
		var all sync.WaitGroup
		for i := range calls {
			name := fmt.Sprint("call ", i)
			all.Go(func() {
				got := 0
				res, err := second.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, LogLevel: mcp.LevelInfo,
					Params: []byte(`{"name":"log","arguments":{"name":"` + name + `"}}`),
					Notify: func(n mcp.Notification) {
						if got++; !strings.Contains(string(n.Params), name) || strings.Contains(string(n.Params), "dowel/request") {
							t.Errorf("%s got %s", name, n.Params)
						}
					}})
				if err != nil || got != lines {
					t.Errorf("%s: %d log messages, want %d: %v, %v", name, got, lines, res, err)
				}
			})
		}
		all.Wait()
		second.Close()
		first.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}
