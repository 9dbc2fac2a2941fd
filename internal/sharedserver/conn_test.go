package sharedserver

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/mcp"
)

// A short loss of the connection to the network, of this process or of the other one, ends no call.
// A longer one does.
func TestBreaksOfNetwork(t *testing.T) {
	for _, test := range []struct {
		what   string
		set    func(n *replicatest.Net, owner string, isAway bool)
		breaks time.Duration
		ends   bool
	}{
		{"this process, short", func(n *replicatest.Net, _ string, isAway bool) { n.SetCut(isAway) }, 2 * time.Second, false},
		{"this process, long", func(n *replicatest.Net, _ string, isAway bool) { n.SetCut(isAway) }, 4500 * time.Millisecond, true},
		{"the owner, short", (*replicatest.Net).SetAway, 700 * time.Millisecond, false},
		{"the owner, long", (*replicatest.Net).SetAway, 2500 * time.Millisecond, true},
	} {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, s := replicatest.New(), newServer()
				a, own, _ := join(t, n, s)
				b, other, _ := join(t, n, s)
				first, second := dial(t, own), dial(t, other)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := client.Call[string](ctx, second, "wait", nil)
					ended <- err
				}()
				time.Sleep(time.Second)
				test.set(n, a.instance, true)
				time.Sleep(test.breaks)
				test.set(n, a.instance, false)
				time.Sleep(time.Second)
				if hasEnded := len(ended) > 0; hasEnded != test.ends {
					t.Errorf("the call has ended: %v", hasEnded)
				}
				if _, err := client.Call[string](t.Context(), second, "repeat", map[string]int{"times": 3}); (err != nil) != test.ends {
					t.Errorf("another call: %v", err)
				}
				cancel()
				<-ended
				second.Close()
				first.Close()
				b.Close()
				a.Close()
				s.Close()
			})
		})
	}
}

// connPair returns both ends of a connection between two pools.
func connPair(t *testing.T, n *replicatest.Net) (a, b *Pool, from, to *conn) {
	a, _, _ = join(t, n, newServer())
	b, _, _ = join(t, n, newServer())
	from, to = a.newConn(b.instance, "id"), b.newConn(a.instance, "id")
	from.begin()
	to.begin()
	return a, b, from, to
}

// An end that does not read takes a bounded number of bytes, and the other one waits without
// sending again and again. All messages arrive when it reads.
func TestFullConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := replicatest.New()
		a, b, from, to := connPair(t, n)
		const size, all = 512 << 10, 64
		var written atomic.Int64
		go func() {
			for i := range all {
				frame := make([]byte, size)
				frame[0] = byte(i)
				if from.Write(frame) != nil {
					return
				}
				written.Add(1)
			}
		}()
		time.Sleep(time.Second)
		if waiting := written.Load() * size; waiting > 3*queueBytes {
			t.Errorf("%d bytes wait", waiting)
		}
		before := n.Sent()
		time.Sleep(10 * time.Second)
		if sent := n.Sent() - before; sent > 40 {
			t.Errorf("%d messages in 10 seconds", sent)
		}
		began := time.Now()
		for i := range all {
			if frame, err := to.Read(); err != nil || frame[0] != byte(i) {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the messages took %v", took)
		}
		b.Close()
		a.Close()
	})
}

// A connection whose other end does not read ends within seconds.
func TestEndOfFullConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := replicatest.New()
		a, b, from, to := connPair(t, n)
		ended := make(chan error, 1)
		go func() {
			for {
				if err := from.Write(make([]byte, 1<<20)); err != nil {
					ended <- err
					return
				}
			}
		}()
		time.Sleep(time.Second)
		began := time.Now()
		from.Close()
		<-ended
		a.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the end took %v", took)
		}
		to.Close()
		b.Close()
	})
}

// A message that is too large is refused alone, in both directions.
func TestMessageTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		a, own, _ := join(t, n, s)
		b, other, _ := join(t, n, s)
		first, second := dial(t, own), dial(t, other)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := client.Call[string](ctx, second, "wait", nil)
			ended <- err
		}()
		_, err := client.Call[string](t.Context(), second, "repeat", map[string]int{"times": 20 << 20})
		if err == nil || !strings.Contains(err.Error(), "is over the limit") {
			t.Errorf("a large answer: %v", err)
		}
		_, err = client.Call[string](t.Context(), second, "repeat", map[string]any{"times": 1, "more": strings.Repeat("x", 20<<20)})
		if err == nil || !strings.Contains(err.Error(), "is over the limit") {
			t.Errorf("a large request: %v", err)
		}
		if got, err := client.Call[string](t.Context(), second, "repeat", map[string]int{"times": 3}); err != nil || got != "xxx" {
			t.Errorf("another call: %q, %v", got, err)
		}
		if len(ended) > 0 {
			t.Errorf("the call in flight: %v", <-ended)
			ended <- nil
		}
		cancel()
		<-ended
		second.Close()
		first.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// The owner knows the principals of the requests of other replicas. Clients cannot give themselves
// one, and the server sees none of it.
func TestPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		var seen *mcp.Request
		h := mcp.Chain(s, func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				if req.Method == mcp.MethodCallTool {
					seen = req
				}
				return next.ServeMCP(ctx, req)
			})
		})
		a, own, _ := join(t, n, h)
		b, other, _ := join(t, n, h)
		first, second := dial(t, own), dial(t, other)
		const forged = `{"name":"repeat","arguments":{"times":1},"_meta":{"dowel/principal":"eve","a":1}}`
		for _, test := range []struct{ principal, params string }{
			{"ada", `{"name":"repeat","arguments":{"times":1}}`}, {"", `{"name":"repeat","arguments":{"times":1}}`}, {"ada", forged}, {"", forged},
		} {
			req := &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(test.params), Principal: mcp.Principal{ID: test.principal}}
			if _, err := second.RoundTrip(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if seen.Principal.ID != test.principal || strings.Contains(string(seen.Params), "dowel/principal") || strings.Contains(string(seen.Meta), "dowel/principal") {
				t.Errorf("the request of %q: principal %q, params %s", test.principal, seen.Principal.ID, seen.Params)
			}
		}
		second.Close()
		first.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// While the lease is being taken, another replica gets an answer at once.
func TestOwnerTakesLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		n.SetPutDelay(1900 * time.Millisecond)
		a, own, _ := join(t, n, s)
		dialed := make(chan *client.Client)
		go func() { dialed <- dial(t, own) }()
		time.Sleep(time.Second)
		began := time.Now()
		answer, err := n.Send(t.Context(), a.instance, message{Kind: openConn, From: "other", Server: "kv", Conn: "id"}.encode(nil))
		if string(answer) != string(answerStarting) || err != nil || time.Since(began) > 0 {
			t.Errorf("%s, %v after %v", answer, err, time.Since(began))
		}
		c := <-dialed
		n.SetPutDelay(0)
		c.Close()
		a.Close()
		s.Close()
	})
}

// The owner starts its server again for another replica.
func TestRestartAtOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		a, own, _ := join(t, n, s)
		b, other, _ := join(t, n, s)
		first, second := dial(t, own), dial(t, other)
		if isRemote, err := own.RestartAtOwner(t.Context()); isRemote || err != nil {
			t.Errorf("at the owner: %v, %v", isRemote, err)
		}
		if isRemote, err := other.RestartAtOwner(t.Context()); !isRemote || err == nil || !strings.Contains(err.Error(), "it was asked to start again") {
			t.Errorf("at the other replica: %v, %v", isRemote, err)
		}
		slow := make(chan struct{})
		a.opts.Restart = func(string) error { <-slow; return nil }
		if isRemote, err := other.RestartAtOwner(t.Context()); !isRemote || err != nil {
			t.Errorf("a restart that takes long: %v, %v", isRemote, err)
		}
		close(slow)
		n.Remove(a.instance)
		if isRemote, err := other.RestartAtOwner(t.Context()); isRemote || err != nil {
			t.Errorf("without an owner: %v, %v", isRemote, err)
		}
		time.Sleep(replica.LeaseLife)
		second.Close()
		first.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}
