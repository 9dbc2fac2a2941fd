package client_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// This file tests changes of a server in this process, which reach a subscription without its
// reading loop and without a goroutine of the subscription.

const parent, part = "test://a", "test://a/b"

// newChangingServer returns a server with a list and resources that can be subscribed to.
func newChangingServer() *server.Server {
	s := server.New("changing", "1", &server.Options{ListInterval: -1})
	for _, uri := range []string{parent, part} {
		server.Resource(s, uri, "", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	return s
}

var everything = mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: []string{parent, part}}

// eachEra runs a test in a bubble for each era, with a transport to s.
func eachEra(t *testing.T, test func(t *testing.T, s *server.Server, to mcp.Transport, era mcp.Revision)) {
	for _, era := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		t.Run(string(era), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newChangingServer()
				to, err := memory.Dialer(s).Dial(t.Context(), ignoring{}, transport.ClientOptions{Revision: era})
				if err != nil {
					t.Fatal(err)
				}
				defer to.Close()
				test(t, s, to, era)
			})
		})
	}
}

// ignoring is an [mcp.Inbound] that ignores everything.
type ignoring struct{}

func (ignoring) ServeMCP(context.Context, *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.MethodNotFound("")
}
func (ignoring) Notify(mcp.Notification) {}
func (ignoring) Down(error)              {}

// subscribe runs a subscription until ctx ends.
func subscribe(t *testing.T, ctx context.Context, to mcp.Transport, notify func(mcp.Notification)) {
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: everything})
	if err != nil {
		t.Error(err)
	}
	req := &mcp.Request{Method: mcp.MethodListen, Params: params, Notify: notify}
	if _, err := to.RoundTrip(mcpwire.WithInlineNotify(ctx), req); ctx.Err() == nil {
		t.Error("the subscription ended early:", err)
	}
}

// A change has reached the subscription when the call that announces it returns. An update of a
// resource arrives once, although the filter has two URIs that match it.
func TestChangesAreDelivered(t *testing.T) {
	eachEra(t, func(t *testing.T, s *server.Server, to mcp.Transport, era mcp.Revision) {
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		var subscribing sync.WaitGroup
		subscribing.Go(func() { subscribe(t, ctx, to, func(n mcp.Notification) { got = append(got, n.Method) }) })
		synctest.Wait()
		s.ListChanged(server.KindResource)
		s.Updated(part)
		s.ListChanged(server.KindResource)
		if !era.Modern() {
			got = slices.Compact(got) // a session has a subscription for each URI
		}
		want := []string{mcp.NotificationAcknowledged, mcp.NotificationResourcesChanged, mcp.NotificationResourceUpdated, mcp.NotificationResourcesChanged}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		cancel()
		subscribing.Wait()
	})
}

// Nothing is passed to a subscription that has ended, while there are further changes.
func TestNoChangeAfterTheEnd(t *testing.T) {
	eachEra(t, func(t *testing.T, s *server.Server, to mcp.Transport, _ mcp.Revision) {
		var isOver atomic.Bool
		var changing sync.WaitGroup
		for range 2 {
			changing.Go(func() {
				for !isOver.Load() {
					s.Updated(part)
					s.ListChanged(server.KindResource)
				}
			})
		}
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			var isReturned atomic.Bool
			changes := 0 // Notify is called by one goroutine at a time
			subscribe(t, ctx, to, func(mcp.Notification) {
				if changes++; changes == 20 {
					cancel()
				}
				if isReturned.Load() {
					t.Error("a change arrived after the end of the subscription")
				}
			})
			isReturned.Store(true)
			cancel()
		}
		isOver.Store(true)
		changing.Wait()
	})
}

// A tool may announce changes to the client that calls it, and the client's watch has them before
// the result.
func TestChangeBeforeTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChangingServer()
		server.Tool(s, "change", "", func(context.Context, struct{}) (string, error) {
			s.Updated(part)
			return "changed", nil
		})
		c, err := client.Dial(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w, err := c.Watch(t.Context(), everything)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the server's side of the subscription is idle
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			if _, err := client.Call[string](ctx, c, "change", nil); err != nil {
				t.Fatal(err)
			}
		}
		w.Close() // the changes that have arrived are still in its queue
		updates := 0
		for change := range w.Changes() {
			if change.URI != part {
				t.Errorf("got %+v", change)
			}
			updates++
		}
		if updates != 1 { // equal changes that wait are one
			t.Errorf("%d updates", updates)
		}
	})
}
