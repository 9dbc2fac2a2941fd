package streamable_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

const watchedURI = "test://watched"

// watchAtFirst starts two replicas, opens a session with a subscription and a stream at the first,
// and closes the stream. It returns the id of the last event.
func watchAtFirst(t *testing.T, events ...eventsOf) (all []*clusterReplica, in []string, last string) {
	all, _ = startReplicas(t, 2, events...)
	for _, r := range all {
		server.Resource(r.server, watchedURI, "Changes.", func(context.Context, struct{}) (string, error) { return "", nil }, server.ResourceOptions{Name: "watched"})
	}
	awaitItems(t, all[0], all[1])
	awaitItems(t, all[1], all[0])
	in = inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "POST", all[0].url, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+watchedURI+`"}}`, in...); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	lines, cut := stream(t, all[0].url, in...)
	id, _ := strings.CutPrefix(until(t, lines, "id:"), "id:")
	cut()
	return all, in, strings.TrimSpace(id)
}

// awaitItems waits until the replica to has been told of the items of the replica from: a change
// that is made later has arrived.
func awaitItems(t *testing.T, from, to *clusterReplica) {
	t.Helper()
	const uri = "test://later"
	c, err := client.Dial(t.Context(), to.server, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	watch, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	if err != nil {
		t.Fatal(err)
	}
	from.server.Updated(uri)
	for _, err := range watch.Changes() {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// The replica that carried a stream has ended. Changes since then are in no store, so the client
// that resumes at another replica is told that everything may have changed, once.
func TestResumeAfterCarrierHasEnded(t *testing.T) {
	t.Parallel()
	all, in, last := watchAtFirst(t)
	all[0].cluster.Close() // as if the process had been killed, for the others
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	heard := map[string]bool{}
	for len(heard) < 3 { // the server has no prompts
		heard[until(t, lines, "data: {")] = true
	}
	for text := range heard {
		if !strings.Contains(text, "tools/list_changed") && !strings.Contains(text, "resources/list_changed") && !strings.Contains(text, `resources/updated","params":{"uri":"`+watchedURI+`"`) {
			t.Errorf("unexpected: %s", text)
		}
	}
}

// While the replica that carried a stream is there, a client that moves to another one is told of
// real changes only.
func TestResumeWhileCarrierLives(t *testing.T) {
	t.Parallel()
	all, in, last := watchAtFirst(t)
	all[1].endpoint.SetCarrierWait(2 * polltest.Limit) // the answer of the first replica takes long on a busy machine
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	polltest.Until(t, "the first replica says that it has carried the stream", func() bool {
		return all[1].endpoint.SessionConns() == 1 && all[1].endpoint.AwaitedCarriers() == 0
	})
	all[1].server.Updated(watchedURI)
	if got := until(t, lines, "data:"); !strings.Contains(got, "resources/updated") {
		t.Errorf("before the change: %s", got)
	}
}

// A slow subscription at one replica does not undo the subscription that another replica
// has stored meanwhile.
func TestSubscriptionsAtTwoReplicas(t *testing.T) {
	t.Parallel()
	all, _ := startReplicas(t, 2)
	const slow, quick = "test://slow", "test://quick"
	arrived, goOn := make(chan struct{}), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arrived) }) // a replica may subscribe again
	for i, r := range all {
		if i == 1 {
			r.server.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
					if req.Method == mcp.MethodListen && strings.Contains(string(req.Params), slow) {
						arrive()
						<-goOn
					}
					return next.ServeMCP(ctx, req)
				})
			})
		}
		for _, uri := range []string{slow, quick} {
			server.Resource(r.server, uri, "Changes.", func(context.Context, struct{}) (string, error) { return "", nil }, server.ResourceOptions{Name: uri})
		}
	}
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	subscribe := func(url, uri string) {
		if got := send(t, "POST", url, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`, in...); got.status != 200 || strings.Contains(got.body, "error") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); subscribe(all[1].url, slow) }()
	<-arrived
	subscribe(all[0].url, quick)
	close(goOn)
	<-done
	lines, cut := stream(t, all[1].url, in...)
	defer cut()
	all[1].server.Updated(quick)
	for _, uri := range []string{quick, slow} {
		if uri == slow {
			all[1].server.Updated(slow)
		}
		for !strings.Contains(until(t, lines, "data: {"), uri) {
		}
	}
}

// A replica that has just started may refuse a subscription, because the server with the resource
// does not run yet. The subscription begins when the list of resources has changed.
func TestSubscriptionToLaterResource(t *testing.T) {
	t.Parallel()
	all, _ := startReplicas(t, 2)
	var isThere atomic.Bool
	all[1].server.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListen && strings.Contains(string(req.Params), watchedURI) && !isThere.Load() {
				return nil, mcp.ResourceNotFound(watchedURI)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	addResource := func(r *clusterReplica, uri string) {
		server.Resource(r.server, uri, "Changes.", func(context.Context, struct{}) (string, error) { return "", nil }, server.ResourceOptions{Name: uri})
	}
	for _, r := range all {
		addResource(r, "test://other")
	}
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "POST", all[0].url, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+watchedURI+`"}}`, in...); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	lines, cut := stream(t, all[1].url, in...)
	defer cut()
	until(t, lines, "id:")
	isThere.Store(true)
	addResource(all[1], watchedURI)
	for !strings.Contains(until(t, lines, "data: {"), "resources/updated") {
	}
}
