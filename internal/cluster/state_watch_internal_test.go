package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// watchedState opens the watches that a test wants.
type watchedState struct {
	jetstream.KeyValue
	open func(context.Context) (jetstream.KeyWatcher, error)
}

func (s watchedState) WatchAll(ctx context.Context, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return s.open(ctx)
}

// testWatch is a watch that brings the entries which a test sends.
type testWatch chan jetstream.KeyValueEntry

func (w testWatch) Updates() <-chan jetstream.KeyValueEntry { return w }
func (testWatch) Stop() error                               { return nil }

func openAt(t *testing.T, url string) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newBeside returns a replica that has the connection of another one. open opens its watches.
func newBeside(other *Cluster, open func(context.Context) (jetstream.KeyWatcher, error)) *Cluster {
	c := &Cluster{
		opts: other.opts, name: other.name, id: "beside", conn: other.conn, js: other.js, state: watchedState{other.state, open},
		record: other.keysSeen(), members: map[string]member{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// startFollowing lets a replica follow the leases, with the watch first, until the test ends. ended
// is closed when the replica does so no more.
func startFollowing(t *testing.T, c *Cluster, first jetstream.KeyWatcher) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		c.follow(first)
	}()
	t.Cleanup(func() { c.cancel(); <-ended; c.running.Wait() })
	return ended
}

// A replica whose watch of the leases has ended renews its lease, and opens a new watch.
func TestWatchThatHasEnded(t *testing.T) {
	t.Parallel()
	other := openAt(t, natstest.Start(t, nil).ClientURL())
	over := make(testWatch)
	close(over)
	c := newBeside(other, func(ctx context.Context) (jetstream.KeyWatcher, error) { return other.state.WatchAll(ctx) })
	ended := startFollowing(t, c, over)
	polltest.Until(t, "the other replica is known", func() bool {
		select {
		case <-ended:
			t.Fatal("the replica renews its lease no more")
		default:
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		_, known := c.members[other.id]
		return known
	})
}

// A replica renews its lease while a NATS server does not answer the request for a new watch.
func TestLeaseIsRenewedWhileWatchOpens(t *testing.T) {
	t.Parallel()
	other := openAt(t, natstest.Start(t, nil).ClientURL())
	asked := make(chan time.Time, 100)
	c := newBeside(other, func(ctx context.Context) (jetstream.KeyWatcher, error) {
		asked <- time.Now()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	startFollowing(t, c, make(testWatch))
	since := <-asked
	polltest.Until(t, "the lease is renewed", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.renewed.After(since)
	})
}

// leaseEntry is a lease in the bucket.
type leaseEntry struct {
	jetstream.KeyValueEntry
	revision uint64
}

func (leaseEntry) Operation() jetstream.KeyValueOp { return jetstream.KeyValuePut }
func (leaseEntry) Value() []byte                   { return []byte("{}") }
func (e leaseEntry) Revision() uint64              { return e.revision }

// A new watch begins with the stored leases. They are renewals only if they are newer than what the
// watch before has brought.
func TestStoredLeaseIsNoRenewal(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{"own", "other"} {
		c := &Cluster{id: "own", conn: new(nats.Conn), members: map[string]member{name: {revision: 5, seen: long}}}
		if c.applyLease(name, leaseEntry{revision: 5}); !c.members[name].seen.Equal(long) {
			t.Errorf("%s: a lease that was seen before counts as renewed", name)
		}
		if c.applyLease(name, leaseEntry{revision: 6}); c.members[name].seen.Equal(long) {
			t.Errorf("%s: a renewal does not count", name)
		}
	}
}

// failingStreams stores nothing while it fails.
type failingStreams struct {
	jetstream.JetStream
	fails atomic.Bool
}

func (s *failingStreams) Publish(ctx context.Context, subject string, data []byte, o ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if s.fails.Load() {
		return nil, jetstream.ErrNoStreamResponse
	}
	return s.JetStream.Publish(ctx, subject, data, o...)
}

// The NATS server of a replica may be cut off from the others while the connection stays. Then
// messages are lost as with the connection, and watchers are told when JetStream answers again.
func TestWatchAfterLostJetStream(t *testing.T) {
	t.Parallel()
	other := openAt(t, natstest.Start(t, nil).ClientURL())
	c := newBeside(other, func(ctx context.Context) (jetstream.KeyWatcher, error) { return other.state.WatchAll(ctx) })
	js := &failingStreams{JetStream: other.js}
	c.js = js
	told := make(chan string, 10)
	stop, err := storedValues{cluster: c}.Watch("n", func(key string) { told <- key })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	startFollowing(t, c, make(testWatch))
	renewal := func() (stored time.Time, failed error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.renewed, c.leaseErr
	}
	polltest.Until(t, "the lease is renewed", func() bool { stored, _ := renewal(); return !stored.IsZero() })
	js.fails.Store(true)
	polltest.Until(t, "a renewal has failed", func() bool { _, failed := renewal(); return failed != nil })
	if len(told) > 0 {
		t.Errorf("%q has changed", <-told)
	}
	js.fails.Store(false)
	if key := <-told; key != "" {
		t.Errorf("%q has changed", key)
	}
}
