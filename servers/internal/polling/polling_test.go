package polling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

const interval = time.Minute

// world is what a poller looks at, and what it reports.
type world struct {
	poller *Poller

	mu      sync.Mutex
	states  map[string]string // by URI; a look at another one fails
	looks   int
	changed []string
	acked   []string // of the last subscription
}

func newWorld(t *testing.T) *world {
	w := &world{states: map[string]string{"x:a": "1", "x:b": "1"}}
	w.poller = New(Options{
		Interval: interval,
		Accepts:  func(uri string) bool { return uri != "x:no" },
		Look: func(_ context.Context, uri, _ string) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.looks++
			if state, ok := w.states[uri]; ok {
				return state, nil
			}
			return "", errors.New("unreachable")
		},
		Changed: func(uri string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changed = append(w.changed, uri)
		},
	})
	t.Cleanup(w.poller.Close)
	return w
}

// subscribe opens a subscription that lasts until the returned function is called.
func (w *world) subscribe(t *testing.T, uris ...string) (unsubscribe func()) {
	t.Helper()
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: uris}})
	if err != nil {
		t.Fatal(err)
	}
	handler := w.poller.Middleware(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		var p mcp.ListenParams
		if err := mcp.Decode(req.Params, &p); err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		w.acked = p.Notifications.ResourceSubscriptions
		w.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = handler.ServeMCP(ctx, &mcp.Request{Method: mcp.MethodListen, Params: params}) }()
	synctest.Wait()
	return func() { cancel(); synctest.Wait() }
}

// set changes the state of a resource; an empty one makes it unreachable.
func (w *world) set(uri, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.states[uri] = state; state == "" {
		delete(w.states, uri)
	}
}

// acknowledged returns the resources of the last subscription; nil before its acknowledgement.
func (w *world) acknowledged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// pass lets a time pass and checks what was looked at and reported since the last check.
func (w *world) pass(t *testing.T, d time.Duration, looks int, changed ...string) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks != looks || !slices.Equal(w.changed, changed) {
		t.Errorf("%d looks, changes %q; want %d and %q", w.looks, w.changed, looks, changed)
	}
	w.looks, w.changed = 0, nil
}

// A change is reported once. There are looks only while there are subscriptions.
func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pass(t, time.Hour, 0)
		endFirst := w.subscribe(t, "x:a", "x:no", "x:a")
		if !slices.Equal(w.acknowledged(), []string{"x:a"}) {
			t.Errorf("the subscription has %q", w.acknowledged())
		}
		w.pass(t, interval, 2)
		w.set("x:a", "2")
		w.pass(t, interval, 1, "x:a")
		w.pass(t, 2*interval, 2)
		endSecond := w.subscribe(t, "x:a", "x:b") // x:a is known already
		w.pass(t, 0, 1)
		endFirst()
		w.set("x:a", "3")
		w.set("x:b", "3")
		w.pass(t, interval, 2, "x:a", "x:b")
		endSecond()
		w.pass(t, time.Hour, 0)
		w.set("x:a", "4") // between two subscriptions
		defer w.subscribe(t, "x:a")()
		w.pass(t, interval, 2)
	})
}

// If a resource cannot be reached at first, its first state counts as a change, because it may be
// one. Later failures keep the last state.
func TestPollingFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.subscribe(t, "x:new")()
		w.pass(t, interval, 2)
		w.set("x:new", "1")
		w.pass(t, interval, 1, "x:new")
		w.set("x:new", "")
		w.pass(t, interval, 1)
		w.set("x:new", "1")
		w.pass(t, interval, 1)
	})
}

// A pause postpones the looks, and the change is reported after it.
func TestPollingPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.subscribe(t, "x:a")()
		w.pass(t, 0, 1)
		w.set("x:a", "2")
		w.poller.Pause(time.Now().Add(time.Hour))
		w.poller.Pause(time.Now().Add(time.Minute)) // is shorter
		w.pass(t, time.Hour-time.Second, 0)
		w.pass(t, interval, 1, "x:a")
	})
}

// A subscription waits for first looks for a bounded time. A look that took longer is no change.
func TestPollingSlowLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		look := w.poller.opts.Look
		var isSlow atomic.Bool
		w.poller.opts.Look = func(ctx context.Context, uri, known string) (string, error) {
			if isSlow.Load() {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return look(ctx, uri, known)
		}
		isSlow.Store(true)
		begun := time.Now()
		defer w.subscribe(t, "x:a", "x:b")()
		if w.acknowledged() != nil {
			t.Fatal("the subscription is acknowledged before the first look")
		}
		for w.acknowledged() == nil {
			time.Sleep(firstLooks / 10)
			synctest.Wait()
		}
		if waited := time.Since(begun); waited != firstLooks {
			t.Errorf("the subscription waits %v", waited)
		}
		isSlow.Store(false)
		w.pass(t, interval, 2)
		w.set("x:b", "2")
		w.pass(t, interval, 2, "x:b")
	})
}

// First looks run at the same time, up to a bound.
func TestPollingFirstLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var running, most atomic.Int32
		w.poller.opts.Look = func(context.Context, string, string) (string, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(firstLooks / 4)
			return "1", nil
		}
		var uris []string
		for i := range 3 * maxLooks {
			uris = append(uris, fmt.Sprintf("x:%d", i))
		}
		defer w.subscribe(t, uris...)()
		w.pass(t, firstLooks*3/4, 0)
		if len(w.acknowledged()) != len(uris) || most.Load() != maxLooks {
			t.Errorf("%d resources are acknowledged, %d looks ran at the same time", len(w.acknowledged()), most.Load())
		}
	})
}

// Close ends the first looks. Later subscriptions look at nothing.
func TestPollingClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var looks, ended atomic.Int32
		w.poller.opts.Look = func(ctx context.Context, _, _ string) (string, error) {
			looks.Add(1)
			<-ctx.Done()
			ended.Add(1)
			return "", ctx.Err()
		}
		begun := time.Now()
		defer w.subscribe(t, "x:a")()
		w.poller.Close()
		if ended.Load() != 1 || time.Since(begun) != 0 {
			t.Errorf("Close has ended %d looks after %v", ended.Load(), time.Since(begun))
		}
		defer w.subscribe(t, "x:b")()
		time.Sleep(time.Hour)
		if looks.Load() != 1 {
			t.Errorf("%d looks, want none after Close", looks.Load()-1)
		}
	})
}

// A subscription during a pause reports the first state, because it may be a change.
func TestPollingPauseAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.poller.Pause(time.Now().Add(interval / 2))
		defer w.subscribe(t, "x:a")()
		w.pass(t, interval, 1, "x:a")
		w.pass(t, interval, 1)
	})
}

// A look that hangs is cancelled after a minute, and the others follow.
func TestPollingHangingLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		look := w.poller.opts.Look
		var hangs atomic.Bool
		w.poller.opts.Look = func(ctx context.Context, uri, known string) (string, error) {
			if hangs.Load() && uri == "x:a" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return look(ctx, uri, known)
		}
		defer w.subscribe(t, "x:a", "x:b")()
		w.pass(t, interval/2, 2)
		hangs.Store(true)
		w.set("x:b", "2")
		w.pass(t, interval/2+lookTimeout, 1, "x:b")
	})
}

func TestPollingBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var uris []string
		for i := range maxResources + 1 {
			uris = append(uris, fmt.Sprintf("x:%d", i))
		}
		end := w.subscribe(t, uris...)
		if !slices.Equal(w.acknowledged(), uris[:maxResources]) {
			t.Errorf("the subscription has %d resources", len(w.acknowledged()))
		}
		end()
		defer w.subscribe(t, uris[maxResources])()
		if len(w.acknowledged()) != 1 {
			t.Error("an ended subscription still counts")
		}
	})
}
