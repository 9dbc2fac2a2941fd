package gateway_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// resourceFollower is a client that subscribes to one resource.
type resourceFollower struct {
	*client.Client
	watch   *client.Watch
	updates chan client.Change
	ended   sync.WaitGroup
}

func follow(t *testing.T, to mcp.Handler, r mcp.Revision) *resourceFollower {
	t.Helper()
	f := &resourceFollower{Client: dial(t, to, client.Options{Wire: client.Wire{Revision: r}, Logger: quiet}), updates: make(chan client.Change, 100)}
	w, err := f.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{watchedURI}})
	if err != nil {
		t.Fatal(err)
	}
	f.watch = w
	f.ended.Go(func() {
		for change, err := range w.Changes() {
			if err == nil && change.Method == mcp.NotificationResourceUpdated {
				f.updates <- change
			}
		}
	})
	t.Cleanup(func() { w.Close(); f.ended.Wait() })
	return f
}

// awaitUpdate waits for an update.
func (f *resourceFollower) awaitUpdate(t *testing.T, after string) {
	t.Helper()
	select {
	case change := <-f.updates:
		if change.URI != watchedURI {
			t.Errorf("%s: %+v", after, change)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s: no update was received", after)
	}
}

// changeAndAwait makes the server change the resource, and waits for the update.
func (f *resourceFollower) changeAndAwait(t *testing.T, tool, after string) {
	t.Helper()
	if _, err := client.Call[string](t.Context(), f.Client, tool, nil); err != nil {
		t.Fatal(err)
	}
	f.awaitUpdate(t, after)
}

// A subscription lasts as long as its client wants, through restarts of the server.
func TestSubscriptionOutlivesServer(t *testing.T) {
	up := func(change func(d *hub.Definition)) []hub.Definition {
		d := hub.Definition{Name: "up", Target: everything.New(), Fingerprint: "1"}
		change(&d)
		return []hub.Definition{d}
	}
	hold := func(s hub.Status) []hub.Definition {
		return up(func(d *hub.Definition) { d.Hold = hub.Hold{Status: s, Reason: "the test says so"} })
	}
	same := up(func(*hub.Definition) {})
	for name, away := range map[string][]hub.Definition{
		"disabled":            hold(hub.Disabled),
		"untrusted":           hold(hub.NeedsTrust),
		"lacking a variable":  hold(hub.NeedsConfiguration),
		"removed":             nil,
		"another for a while": up(func(d *hub.Definition) { d.Target, d.Fingerprint = asker(), "2" }),
	} {
		for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
			for view, tool := range map[string]string{"merged": "up__test_trigger_resource_update", "alone": "test_trigger_resource_update"} {
				t.Run(name+"/"+view+"/"+string(r), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						h := hubOf(t, hub.Options{}, same...)
						settle(t, h)
						g := gatewayOf(t, h, gateway.Options{})
						if view == "alone" {
							g = g.Only("up")
						}
						f := follow(t, g, r)
						f.changeAndAwait(t, tool, "at first")
						h.Apply(away, "the test takes it away")
						settle(t, h)
						time.Sleep(time.Minute)
						h.Apply(same, "the test brings it back")
						settle(t, h)
						f.awaitUpdate(t, "after it has come back")
						f.changeAndAwait(t, tool, "after that")
					})
				})
			}
		}
	}
}

// A subscription starts a lazy server, also one that has not run before.
func TestSubscriptionStartsServer(t *testing.T) {
	cache := &offers{}
	d := hub.Definition{Name: "up", Target: everything.New(), Fingerprint: "1", Policy: hub.Policy{Lazy: true}}
	first := hubOf(t, hub.Options{Cache: cache}, d)
	settle(t, first)
	first.Close()
	h := hubOf(t, hub.Options{Cache: cache}, d)
	if s := h.Upstream("up").State().Status; s != hub.Stopped {
		t.Fatalf("it is %v", s)
	}
	f := follow(t, gatewayOf(t, h, gateway.Options{}), mcp.LatestRevision)
	if got := f.watch.Acknowledged().ResourceSubscriptions; !slices.Equal(got, []string{watchedURI}) {
		t.Errorf("acknowledged: %v", got)
	}
	f.changeAndAwait(t, "up__test_trigger_resource_update", "when it runs")
}

// offers is a [hub.Cache].
type offers struct {
	mu    sync.Mutex
	saved map[string][]byte
}

func (o *offers) Load(name, fingerprint string) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	offer, ok := o.saved[name+fingerprint]
	return offer, ok
}

func (o *offers) Save(name, fingerprint string, offer []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.saved == nil {
		o.saved = map[string][]byte{}
	}
	o.saved[name+fingerprint] = offer
}

// unreliable is an everything server that refuses subscriptions while refuse returns true.
type unreliable struct {
	mcp.Handler
	refuse func() bool
}

func (m unreliable) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method == mcp.MethodListen && string(req.Params) != "" && m.refuse() && hasResources(req) {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "not now")
	}
	return m.Handler.ServeMCP(ctx, req)
}

func hasResources(req *mcp.Request) bool {
	var p mcp.ListenParams
	return json.Unmarshal(req.Params, &p) == nil && len(p.Notifications.ResourceSubscriptions) > 0
}

// A refused subscription is not acknowledged. A server that returns is asked again.
func TestSubscriptionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		refusing := true
		set := func(on bool) { mu.Lock(); defer mu.Unlock(); refusing = on }
		d := hub.Definition{Name: "up", Target: unreliable{everything.New(), func() bool { mu.Lock(); defer mu.Unlock(); return refusing }}}
		h := hubOf(t, hub.Options{}, d)
		settle(t, h)
		g := gatewayOf(t, h, gateway.Options{})
		refused := dial(t, g, client.Options{Logger: quiet})
		if w, err := refused.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{watchedURI}}); err == nil {
			t.Errorf("acknowledged although it was refused: %+v", w.Acknowledged())
			w.Close()
		}
		set(false)
		f := follow(t, g, mcp.LatestRevision)
		set(true)
		h.Upstream("up").Restart("the test does it")
		settle(t, h)
		time.Sleep(10 * time.Second)
		set(false)
		f.awaitUpdate(t, "after it agreed again")
		f.changeAndAwait(t, "up__test_trigger_resource_update", "after that")
	})
}

// A legacy client reads why the server refuses its subscription, in both eras of the server. A
// client of 2026-07-28 gets an acknowledgement without the resource.
func TestReasonOfRefusal(t *testing.T) {
	for _, up := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
		synctest.Test(t, func(t *testing.T) {
			h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: unreliable{everything.New(), func() bool { return true }},
				Options: client.Options{Wire: client.Wire{Revision: up}}})
			settle(t, h)
			g := gatewayOf(t, h, gateway.Options{})
			legacy := dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}, Logger: quiet})
			_, err := legacy.RoundTrip(t.Context(), &mcp.Request{Method: mcpwire.MethodSubscribe, Params: []byte(`{"uri":"` + watchedURI + `"}`)})
			if code(err, jsonrpc.CodeInternal) != nil || !strings.Contains(err.Error(), "not now") {
				t.Errorf("a server of %s: %v", up, err)
			}
			modern := dial(t, g, client.Options{Logger: quiet})
			if w, err := modern.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{watchedURI}}); err != nil || len(w.Acknowledged().ResourceSubscriptions) > 0 {
				t.Errorf("a server of %s: %+v, %v", up, w, err)
			} else {
				w.Close()
			}
		})
	}
}

// A subscription waits for a server that is starting.
func TestSubscriptionWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: slowly{everything.New()}})
		f := follow(t, gatewayOf(t, h, gateway.Options{}), mcp.LatestRevision)
		if got := f.watch.Acknowledged().ResourceSubscriptions; len(got) != 1 {
			t.Errorf("acknowledged: %v", got)
		}
	})
}

// slowly is a server that takes two seconds for the handshake.
type slowly struct{ mcp.Handler }

func (s slowly) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method == mcp.MethodDiscover {
		time.Sleep(2 * time.Second)
	}
	return s.Handler.ServeMCP(ctx, req)
}

// half is a server that honours one of the requested resources.
type half struct{ mcp.Handler }

func (s half) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodListen || !hasResources(req) {
		return s.Handler.ServeMCP(ctx, req)
	}
	ack, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{watchedURI}}})
	if err == nil {
		err = req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: ack})
	}
	if err != nil {
		return nil, err
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// recordingPeer is a peer that records its notifications.
type recordingPeer struct{ changes chan mcp.Notification }

func (recordingPeer) Notify(context.Context, mcp.Notification) error { return nil }

func (p recordingPeer) Change(_ context.Context, c mcp.Notification) error {
	p.changes <- c
	return nil
}

// Changes of resources that the server has not acknowledged are dropped.
func TestOnlyWhatWasAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: half{everything.New()}})
		settle(t, h)
		g := gatewayOf(t, h, gateway.Options{}).Only("up")
		p := recordingPeer{make(chan mcp.Notification, 100)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = g.ServeMCP(ctx, &mcp.Request{ // until it is cancelled
				Method: mcp.MethodListen, Peer: p, Revision: mcp.LatestRevision,
				Params: json.RawMessage(`{"notifications":{"resourceSubscriptions":["` + watchedURI + `","test://refused"]}}`),
			})
		}()
		synctest.Wait()
		<-p.changes // the acknowledgement
		h.Upstream("up").Restart("the test does it")
		time.Sleep(10 * time.Second)
		heard := 0
		for ; len(p.changes) > 0; heard++ {
			if c := <-p.changes; strings.Contains(string(c.Params), "test://refused") {
				t.Errorf("%s", c.Params)
			}
		}
		if heard == 0 {
			t.Error("nothing is told after an interruption")
		}
		cancel()
		<-done
	})
}

// A subscription follows its resource to another server.
func TestSubscriptionMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: everything.New(), Fingerprint: "1"})
		settle(t, h)
		f := follow(t, gatewayOf(t, h, gateway.Options{}), mcp.LatestRevision)
		f.changeAndAwait(t, "up__test_trigger_resource_update", "at first")
		h.Apply([]hub.Definition{{Name: "up", Target: asker(), Fingerprint: "2"}, {Name: "b", Target: everything.New(), Fingerprint: "1"}}, "moved")
		settle(t, h)
		time.Sleep(5 * time.Minute)
		for len(f.updates) > 0 {
			<-f.updates
		}
		f.changeAndAwait(t, "b__test_trigger_resource_update", "after it has moved")
	})
}

// A lazy server with a new definition is started for an existing subscription.
func TestSubscriptionOfRedefined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := hub.Definition{Name: "up", Target: everything.New(), Fingerprint: "1", Policy: hub.Policy{Lazy: true}}
		other := d
		other.Target, other.Fingerprint = everything.New(), "2"
		h := hubOf(t, hub.Options{Cache: &offers{}}, d)
		settle(t, h)
		for _, x := range []hub.Definition{other, d} {
			h.Apply([]hub.Definition{x}, "both are known")
			settle(t, h)
		}
		f := follow(t, gatewayOf(t, h, gateway.Options{}), mcp.LatestRevision)
		f.changeAndAwait(t, "up__test_trigger_resource_update", "at first")
		h.Apply([]hub.Definition{other}, "its entry changed")
		f.awaitUpdate(t, "after it has become another")
	})
}

// The capabilities of an earlier server do not count for a server that is starting.
func TestSubscriptionWhileBecoming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := hub.Definition{Name: "up", Target: slowly{everything.New()}, Fingerprint: "2"}
		h := hubOf(t, hub.Options{Cache: &offers{}}, other)
		settle(t, h)
		h.Apply([]hub.Definition{{Name: "up", Target: asker(), Fingerprint: "1"}}, "the test does it")
		settle(t, h)
		h.Apply([]hub.Definition{other}, "the test does it")
		f := follow(t, gatewayOf(t, h, gateway.Options{}), mcp.LatestRevision)
		f.changeAndAwait(t, "up__test_trigger_resource_update", "when it has started")
	})
}
