package ratelimit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// fakeNetwork passes messages to all at once. While isDown is set, it cannot be reached.
type fakeNetwork struct {
	replica.Network
	mu       sync.Mutex
	handlers []replica.Handler
	isDown   bool
}

func (n *fakeNetwork) Receive(_ string, h replica.Handler) (func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handlers = append(n.handlers, h)
	return func() {}, nil
}

func (n *fakeNetwork) SendAll(message []byte) error {
	n.mu.Lock()
	handlers, isDown := n.handlers, n.isDown
	n.mu.Unlock()
	if isDown {
		return replica.ErrUnreachable
	}
	var failed error
	for _, h := range handlers {
		_, err := h(context.Background(), message)
		failed = errors.Join(failed, err)
	}
	return failed
}

func (n *fakeNetwork) State() replica.State { return replica.State{Replicas: 3} }

func (n *fakeNetwork) setDown(isDown bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isDown = isDown
}

// count calls the limiters in turn as fast as they allow, for some time, and returns the number of
// calls that were let through.
func count(limiters []*Limiter, d time.Duration) (n int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, l := range limiters {
			if wait, done, refusal := l.Start("ann", true); refusal == "" {
				time.Sleep(wait)
				done()
				n++
			}
		}
		time.Sleep(time.Millisecond)
	}
	return n
}

// A client that spreads its calls over three replicas gets about the rate of one. While the
// replicas cannot reach each other, each has its share.
func TestRateOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeNetwork{}
		var all []*Limiter
		for range 3 {
			all = append(all, New(Options{Rate: 10, Burst: 20, Network: network}))
		}
		for _, phase := range []struct {
			name   string
			isDown bool
		}{{"together", false}, {"apart", true}, {"together again", false}} {
			network.setDown(phase.isDown)
			count(all, 10*time.Second) // the bursts are over then, and the change is noticed
			if n := count(all, 20*time.Second); n < 180 || n > 220 {
				t.Errorf("%s: %d calls in 20 seconds at 10 a second", phase.name, n)
			}
		}
		if _, done, refusal := all[0].Start("bob", true); refusal != "" {
			t.Errorf("another client: %s", refusal)
		} else {
			done()
		}
		time.Sleep(time.Second)
	})
}
