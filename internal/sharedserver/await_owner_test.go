package sharedserver

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// While no replica can take the lease, dials follow on each other with pauses. The next one
// succeeds soon after it can be taken.
func TestLeaseCannotBeTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		var p *Pool
		var dials atomic.Int64
		connected := make(chan mcp.Transport, 1)
		dialAgain := func() {
			dials.Add(1)
			made, err := p.Target("kv", memory.Dialer(s, transport.ServerOptions{Logger: discard})).Dial(t.Context(), inbound{make(chan error, 1)}, transport.ClientOptions{Logger: discard})
			if err == nil {
				connected <- made
			}
		}
		p, err := Join(Options{Network: n, Values: n, Logger: discard, Redial: func(string) bool { dialAgain(); return true }})
		if err != nil {
			t.Fatal(err)
		}
		n.SetFull(true)
		dialAgain()
		time.Sleep(time.Minute)
		if got := dials.Load(); got < 20 || got > 40 {
			t.Errorf("%d dials in a minute", got)
		}
		n.SetFull(false)
		began := time.Now()
		made := <-connected
		if took := time.Since(began); took > redialLimit {
			t.Errorf("the dial has come after %v", took)
		}
		made.Close()
		p.Close()
		s.Close()
	})
}

// A replica that waits for a server that has failed at its owner looks seldom, and connects soon
// after it is mended.
func TestServerFailsAtOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		a, own, _ := join(t, n, s)
		b, other, redialed := join(t, n, s)
		first := dial(t, own)
		var isMended atomic.Bool
		a.opts.Serve = func(string) (mcp.Handler, error) {
			if isMended.Load() {
				return s, nil
			}
			return nil, errors.New("it is broken")
		}
		if _, err := other.Dial(t.Context(), inbound{make(chan error, 1)}, transport.ClientOptions{Logger: discard}); err == nil || HasNoOwner(err) {
			t.Errorf("the dial: %v", err)
		}
		before := n.Sent()
		time.Sleep(time.Minute)
		if got := n.Sent() - before; got < 20 || got > 40 {
			t.Errorf("%d messages in a minute", got)
		}
		isMended.Store(true)
		began := time.Now()
		<-redialed
		if took := time.Since(began); took > serverLookLimit {
			t.Errorf("the dial has come after %v", took)
		}
		first.Close()
		b.Close()
		a.Close()
		s.Close()
	})
}

// A replica that has connected looks for no owner any more, also if the pool has not
// begun the dial.
func TestLooksEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := replicatest.New(), newServer()
		p, err := Join(Options{Network: n, Values: n, Logger: discard, Redial: func(string) bool { return false }})
		if err != nil {
			t.Fatal(err)
		}
		target := p.Target("kv", memory.Dialer(s, transport.ServerOptions{Logger: discard}))
		n.SetCut(true)
		if _, err := target.Dial(t.Context(), inbound{make(chan error, 1)}, transport.ClientOptions{Logger: discard}); err == nil {
			t.Error("it has found an owner")
		}
		n.SetCut(false)
		c := dial(t, target)
		time.Sleep(10 * time.Second)
		before := n.Reads()
		time.Sleep(time.Minute)
		if got := n.Reads() - before; got > 0 {
			t.Errorf("%d reads in a minute", got)
		}
		c.Close()
		p.Close()
		s.Close()
	})
}

// The looks end also if a dial has succeeded before the first of them.
func TestConnectedBeforeFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{pool: &Pool{ctx: t.Context()}, failures: 1, failedInRow: 1, isAwaiting: true}
		s.noteConnected()
		s.lookForOwner()
		if s.isAwaiting {
			t.Error("a look for the owner is still due")
		}
	})
}
