package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// resourceFollower listens to resources of one upstream, for one subscription of a client.
type resourceFollower struct {
	*subscription
	upstream         *hub.Upstream
	clientURIs       map[string]string // the client's, by those that the upstream knows
	firstHonoured    chan []string     // takes what the upstream honours at first, and nothing where it refuses
	acknowledgedOnce bool              // it has been told
	honoured         map[string]bool   // of names, by the upstream's last acknowledgement
	cancel           context.CancelFunc
}

// run listens for as long as the subscription lives and the upstream is one that is started. After an interruption all
// resources count as updated.
func (f *resourceFollower) run(ctx context.Context) {
	defer f.reportHonoured(nil)
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{
		ResourceSubscriptions: slices.Sorted(maps.Keys(f.clientURIs)),
	}})
	if err != nil {
		return
	}
	req := &mcp.Request{Method: mcp.MethodListen, Params: params, Notify: func(n mcp.Notification) { f.handleNotification(ctx, n) }}
	const shortest, longest = 50 * time.Millisecond, 30 * time.Second
	for pause := shortest; ; pause = min(2*pause, longest) {
		began := time.Now()
		_, err := f.upstream.RoundTrip(ctx, callerOf(f.req), req)
		var answered *mcp.Error
		refused := errors.As(err, &answered)
		if refused && !f.isAcknowledged() || !f.upstream.AwaitCallable(ctx) {
			return
		}
		switch { // an upstream that ends each subscription is not asked without end
		case refused:
			pause = longest
		case time.Since(began) > longest:
			pause = shortest
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// awaitHonoured waits for what the upstream honours at first, and returns that under the client's names: all where it takes too long,
// for then it may come yet.
func (f *resourceFollower) awaitHonoured(limit context.Context) (uris []string) {
	select {
	case own := <-f.firstHonoured:
		for _, uri := range own {
			uris = append(uris, f.clientURIs[uri])
		}
	case <-limit.Done():
		uris = slices.Collect(maps.Values(f.clientURIs))
	}
	return uris
}

// reportHonoured tells what is honoured, the first time.
func (f *resourceFollower) reportHonoured(honoured []string) {
	select {
	case f.firstHonoured <- honoured:
	default:
	}
}

func (f *resourceFollower) handleNotification(ctx context.Context, n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		f.passUpdate(ctx, uri, n.Params)
	case mcp.NotificationAcknowledged:
		var p mcp.AcknowledgedParams
		_ = mcp.Decode(n.Params, &p)                       // what cannot be read honours nothing
		missed := f.acknowledgedOnce || f.isAcknowledged() // before the client is told, which begin lets happen
		f.honoured = map[string]bool{}
		for _, uri := range p.Notifications.ResourceSubscriptions {
			f.honoured[uri] = true
		}
		f.reportHonoured(p.Notifications.ResourceSubscriptions)
		if missed {
			for uri := range f.clientURIs {
				if f.honoured[uri] {
					f.passUpdate(ctx, uri, nil)
				}
			}
		}
		f.acknowledgedOnce = true
	}
}

// passUpdate passes on that a resource has changed, under the URI that the client knows.
func (f *resourceFollower) passUpdate(ctx context.Context, uri string, params json.RawMessage) {
	select {
	case <-f.acknowledged:
	case <-ctx.Done():
		return
	}
	wire, known := f.clientURIs[uri]
	if !known { // a part of a resource
		wire = f.gateway.shownURI(f.gateway.hub.Catalog(), f.upstream, uri)
	}
	if params == nil {
		params = []byte("{}")
	}
	if wire != uri || rawjson.Lookup(params, "uri") == nil {
		params = rawjson.Replace(params, "uri", rawjson.AppendString(nil, wire))
	}
	f.sendChange(ctx, mcp.Change{Method: mcp.NotificationResourceUpdated, Params: withoutSubscriptionID(params)})
}

// withoutSubscriptionID leaves the id of the upstream's subscription out of a change.
func withoutSubscriptionID(params json.RawMessage) json.RawMessage {
	meta := rawjson.Lookup(params, "_meta")
	if rawjson.Lookup(meta, mcp.MetaSubscriptionID) == nil {
		return params
	}
	if meta = rawjson.Set(meta, mcp.MetaSubscriptionID, nil); string(meta) == "{}" {
		meta = nil
	}
	return rawjson.Set(params, "_meta", meta)
}
