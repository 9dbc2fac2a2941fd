package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// gather is how long list changes are gathered: servers come up together.
const gather = 20 * time.Millisecond

// listen answers subscriptions/listen: it passes on changes of the catalog, and of the resources that are asked for.
func (g *Gateway) listen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	if !rawjson.IsObject(rawjson.Lookup(req.Params, "notifications")) {
		return nil, mcp.InvalidParams("%s needs params.notifications, an object that says what to listen to", req.Method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel(nil)
	events := g.hub.Events(ctx, hub.CatalogChanged) // from before the acknowledgement on
	l := &listening{gateway: g, req: req, filter: p.Notifications, cancel: cancel, told: make(chan struct{})}
	l.subscribe(ctx, &work)
	ack, err := mcp.Encode(&mcp.AcknowledgedParams{Notifications: l.filter})
	if err != nil {
		return nil, err
	}
	if err := req.Peer.Change(ctx, mcp.Change{Method: mcp.NotificationAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	close(l.told)
	defer l.stop()
	for e := range events {
		if e.Kind == hub.CatalogChanged && g.view.shows(e.Upstream) || e.Missed > 0 {
			l.changed(ctx, e)
		}
	}
	return nil, context.Cause(ctx)
}

// listening is one subscription of a client.
type listening struct {
	gateway *Gateway
	req     *mcp.Request
	filter  mcp.SubscriptionFilter
	cancel  context.CancelCauseFunc
	told    chan struct{} // closed when the client has been told what is followed

	mu    sync.Mutex
	kinds [4]bool // that have changed
	timer *time.Timer
}

// subscribing bounds how long upstreams have for the subscriptions to their resources, before the client is told of its own:
// what changes from then on is passed on. It is told of those that take longer as if all had changed.
const subscribing = 2 * time.Second

// subscribe follows the resources of the filter, and leaves those in it that can be followed.
func (l *listening) subscribe(ctx context.Context, work *sync.WaitGroup) {
	l.filter.Extensions = nil
	limit, cancel := context.WithTimeout(ctx, subscribing)
	defer cancel()
	following := l.agree()
	var honoured []string
	for _, f := range following {
		work.Go(func() { f.run(ctx) })
	}
	for _, f := range following {
		select {
		case own := <-f.begun:
			for _, uri := range own {
				honoured = append(honoured, f.names[uri])
			}
		case <-limit.Done(): // it may come yet
			honoured = slices.AppendSeq(honoured, maps.Values(f.names))
		}
	}
	l.filter.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(l.filter.ResourceSubscriptions), func(uri string) bool {
		return !slices.Contains(honoured, uri)
	})
}

// agree sorts the resources that can be followed by their upstreams.
func (l *listening) agree() map[*hub.Upstream]*follower {
	c := l.gateway.hub.Catalog()
	all := map[*hub.Upstream]*follower{}
	for _, uri := range l.filter.ResourceSubscriptions {
		u, own := l.gateway.view.resource(c, uri)
		if u == nil || u.Info().Capabilities.Resources == nil || !u.Info().Capabilities.Resources.Subscribe {
			continue
		}
		if all[u] == nil {
			all[u] = &follower{listening: l, upstream: u, names: map[string]string{}, begun: make(chan []string, 1)}
		}
		all[u].names[own] = uri
	}
	return all
}

// changed gathers a change of the catalog.
func (l *listening) changed(ctx context.Context, e hub.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range e.Changed {
		l.kinds[k] = true
	}
	if e.Missed > 0 {
		l.kinds = [4]bool{true, true, true, true}
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(gather, func() { l.tell(ctx) })
	}
}

func (l *listening) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// tell passes on what has been gathered.
func (l *listening) tell(ctx context.Context) {
	l.mu.Lock()
	kinds := l.kinds
	l.kinds, l.timer = [4]bool{}, nil
	l.mu.Unlock()
	for _, change := range []struct {
		due    bool
		method string
	}{
		{kinds[hub.Tool] && l.filter.ToolsListChanged, mcp.NotificationToolsChanged},
		{kinds[hub.Prompt] && l.filter.PromptsListChanged, mcp.NotificationPromptsChanged},
		{(kinds[hub.Resource] || kinds[hub.Template]) && l.filter.ResourcesListChanged, mcp.NotificationResourcesChanged},
	} {
		if change.due {
			l.send(ctx, mcp.Change{Method: change.method})
		}
	}
}

func (l *listening) send(ctx context.Context, change mcp.Change) {
	if err := l.req.Peer.Change(ctx, change); err != nil {
		l.cancel(err)
	}
}

// follower listens to resources of one upstream.
type follower struct {
	*listening
	upstream *hub.Upstream
	names    map[string]string // the client's, by those that the upstream knows
	begun    chan []string     // takes what the upstream honours at first, and nothing where it refuses
	again    bool              // it has been told
}

// run listens for as long as the subscription lives. After an interruption all resources count as updated.
func (f *follower) run(ctx context.Context) {
	defer f.begin(nil)
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{
		ResourceSubscriptions: slices.Sorted(maps.Keys(f.names)),
	}})
	if err != nil {
		return
	}
	req := &mcp.Request{Method: mcp.MethodListen, Params: params, Notify: func(n mcp.Notification) { f.notified(ctx, n) }}
	const shortest, longest = 50 * time.Millisecond, 30 * time.Second
	for pause := shortest; ; pause = min(2*pause, longest) {
		began := time.Now()
		_, err := f.upstream.RoundTrip(ctx, caller(f.req), req)
		var answered *mcp.Error
		if errors.As(err, &answered) || !f.upstream.Revived(ctx) {
			return
		}
		if time.Since(began) > longest {
			pause = shortest
		}
		select {
		case <-time.After(min(pause, longest)): // an upstream that ends each subscription is not asked without end
		case <-ctx.Done():
			return
		}
	}
}

// begin tells what is honoured, the first time.
func (f *follower) begin(honoured []string) {
	select {
	case f.begun <- honoured:
	default:
	}
}

func (f *follower) notified(ctx context.Context, n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		f.updated(ctx, uri, n.Params)
	case mcp.NotificationAcknowledged:
		var p mcp.AcknowledgedParams
		_ = mcp.Decode(n.Params, &p)  // what cannot be read honours nothing
		missed := f.again || f.late() // before the client is told, which begin lets happen
		f.begin(p.Notifications.ResourceSubscriptions)
		if missed {
			for uri := range f.names {
				f.updated(ctx, uri, nil)
			}
		}
		f.again = true
	}
}

// late reports whether the client has been told already what is followed.
func (l *listening) late() bool {
	select {
	case <-l.told:
		return true
	default:
		return false
	}
}

// updated passes on that a resource has changed, under the URI that the client knows.
func (f *follower) updated(ctx context.Context, uri string, params json.RawMessage) {
	select {
	case <-f.told:
	case <-ctx.Done():
		return
	}
	wire, known := f.names[uri]
	if !known { // a part of a resource
		wire = f.gateway.view.wire(f.gateway.hub.Catalog(), f.upstream, uri)
	}
	if params == nil {
		params = []byte("{}")
	}
	if wire != uri || rawjson.Lookup(params, "uri") == nil {
		params = rawjson.Replace(params, "uri", rawjson.AppendString(nil, wire))
	}
	f.send(ctx, mcp.Change{Method: mcp.NotificationResourceUpdated, Params: unsubscribed(params)})
}

// unsubscribed leaves the id of the upstream's subscription out of a change.
func unsubscribed(params json.RawMessage) json.RawMessage {
	meta := rawjson.Lookup(params, "_meta")
	if rawjson.Lookup(meta, mcp.MetaSubscriptionID) == nil {
		return params
	}
	if meta = rawjson.Set(meta, mcp.MetaSubscriptionID, nil); string(meta) == "{}" {
		meta = nil
	}
	return rawjson.Set(params, "_meta", meta)
}
