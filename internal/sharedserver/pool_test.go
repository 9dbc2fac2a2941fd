package sharedserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

var discard = slog.New(slog.DiscardHandler)

// join returns a pool and its target of the server. redialed gets a value at each call of Redial.
func join(t *testing.T, n *replicatest.Net, h mcp.Handler) (p *Pool, target *Target, redialed chan struct{}) {
	redialed = make(chan struct{}, 1)
	p, err := Join(Options{Network: n, Values: n, Logger: discard,
		Serve:   func(string) (mcp.Handler, error) { return h, nil },
		Redial:  func(string) bool { redialed <- struct{}{}; return true },
		Restart: func(string) error { return errors.New("it was asked to start again") }})
	if err != nil {
		t.Fatal(err)
	}
	return p, p.Target("kv", memory.Dialer(h, transport.ServerOptions{Logger: discard})), redialed
}

func dial(t *testing.T, target *Target) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, &client.Options{Logger: discard, Restart: client.Restart{Max: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newServer() *mcpserver.Server {
	s := mcpserver.New("kv", "1", &mcpserver.Options{Logger: discard})
	mcpserver.Tool(s, "repeat", "Repeats a letter.", func(_ context.Context, in struct {
		Times int `json:"times"`
	}) (string, error) {
		return strings.Repeat("x", in.Times), nil
	})
	mcpserver.Tool(s, "wait", "Waits for the end.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	return s
}

// Messages of any size arrive once and in order, also if acknowledgements are lost and little fits.
func TestMessagesBetweenReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		n.Payload = 40 << 10
		a, own, _ := join(t, n, s)
		b, other, _ := join(t, n, s)
		first, second := dial(t, own), dial(t, other)
		n.SetLossy(true)
		if own.Owner() != "this replica" || other.Owner() != describeInstance(a.instance) {
			t.Errorf("the owners are %q and %q", own.Owner(), other.Owner())
		}
		for _, times := range []int{1, 100 << 10, 3 << 20} {
			got, err := client.Call[string](t.Context(), second, "repeat", map[string]int{"times": times})
			if err != nil || len(got) != times {
				t.Errorf("%d letters, %v, want %d", len(got), err, times)
			}
		}
		second.Close()
		first.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// When the owner is gone, its calls end within two seconds. A dial fails at once until the lease
// has ended, and the pool asks for another dial then.
func TestOwnerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		a, own, _ := join(t, n, s)
		b, other, redialed := join(t, n, s)
		first, second := dial(t, own), dial(t, other)
		ended := make(chan error, 1)
		go func() {
			_, err := client.Call[string](t.Context(), second, "wait", nil)
			ended <- err
		}()
		synctest.Wait()
		lease := a.server("kv", "").lease
		began := time.Now()
		n.Remove(a.instance)
		n.Replace(a.server("kv", "").key(), []byte(a.instance+" killed"), 5*time.Second) // renewed by no one
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "has ended") || time.Since(began) > 2*checkInterval {
			t.Errorf("the call: %v after %v", err, time.Since(began))
		}
		second.Close()
		began = time.Now()
		_, err := client.Dial(t.Context(), other, &client.Options{Logger: discard, Restart: client.Restart{Max: -1}})
		if err == nil || !strings.Contains(err.Error(), "has ended") || time.Since(began) > checkInterval {
			t.Errorf("a dial: %v after %v", err, time.Since(began))
		}
		<-redialed
		third := dial(t, other)
		if other.Owner() != "this replica" {
			t.Errorf("the owner is %q", other.Owner())
		}
		<-lease.Context().Done()
		first.Close()
		third.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// A dial that fails before the pool has noticed that it began is followed by another one.
func TestDialFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		dials := make(chan time.Time, 10)
		var p *Pool
		dialAgain := func() {
			_, err := p.Target("kv", memory.Dialer(s, transport.ServerOptions{Logger: discard})).Dial(t.Context(), inbound{make(chan error, 1)}, transport.ClientOptions{Logger: discard})
			if err == nil {
				t.Error("it has found an owner")
			}
			dials <- time.Now()
		}
		p, err := Join(Options{Network: n, Values: n, Logger: discard, Redial: func(string) bool {
			if len(dials) < 3 {
				dialAgain()
			}
			return true
		}})
		if err != nil {
			t.Fatal(err)
		}
		key := p.server("kv", "").key()
		n.Replace(key, []byte("one killed"), time.Hour)
		dialAgain()
		n.Replace(key, []byte("two killed"), time.Hour)
		time.Sleep(time.Second)
		n.Replace(key, []byte("three killed"), time.Hour)
		time.Sleep(time.Second)
		if len(dials) != 3 {
			t.Errorf("%d dials, want 3", len(dials))
		}
		p.Close()
		s.Close()
	})
}

// An owner that is cut off ends its server before another replica may start it. A dial without the
// cluster fails at once.
func TestOwnerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		a, own, redialed := join(t, n, s)
		down := make(chan error, 1)
		in := inbound{down}
		made, err := own.Dial(t.Context(), in, transport.ClientOptions{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		n.SetCut(true)
		if err := <-down; !strings.Contains(fmt.Sprint(err), "lost its lease") || time.Since(began) >= replica.LeaseLife {
			t.Errorf("down with %v after %v", err, time.Since(began))
		}
		made.Close()
		began = time.Now()
		if _, err := own.Dial(t.Context(), in, transport.ClientOptions{Logger: discard}); !errors.Is(err, replica.ErrUnreachable) || time.Since(began) > time.Second {
			t.Errorf("a dial: %v after %v", err, time.Since(began))
		}
		if own.Owner() != "" {
			t.Errorf("the owner is %q", own.Owner())
		}
		n.SetCut(false)
		<-redialed
		a.Close()
		s.Close()
	})
}

type inbound struct{ down chan error }

func (inbound) ServeMCP(context.Context, *mcp.Request) (*mcp.Result, error) {
	return nil, errors.New("no questions")
}
func (inbound) Notify(mcp.Notification) {}
func (i inbound) Down(err error)        { i.down <- err }
