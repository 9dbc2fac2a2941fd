package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// resourceFollower subscribes to resources of one upstream for one client's subscription.
type resourceFollower struct {
	*subscription
	upstream         *hub.Upstream
	clientURIs       map[string]string // from an upstream's URI to the URI under which the client knows it
	firstHonoured    chan []string     // receives the URIs of the first acknowledgement; nil if the upstream refuses
	acknowledgedOnce bool              // the upstream has sent an acknowledgement
	honoured         map[string]bool   // the upstream's URIs in its latest acknowledgement
	cancel           context.CancelFunc
	refusal          error // of the upstream; an acknowledgement cannot carry it; guarded by subscription.mu
}

// followResource keeps the subscription open until ctx ends, the upstream refuses it at first, or
// the hub holds the upstream. After an interruption it reports all resources as changed.
func (f *resourceFollower) followResource(ctx context.Context) {
	defer f.reportHonoured(nil)
	if err := f.gateway.checkScopes(ctx, f.upstream.Name(), f.req); err != nil {
		f.noteRefusal(err)
		return
	}
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{
		ResourceSubscriptions: slices.Sorted(maps.Keys(f.clientURIs)),
	}})
	if err != nil {
		return
	}
	req := &mcp.Request{Method: mcp.MethodListen, Params: params, Notify: func(n mcp.Notification) { f.handleNotification(ctx, n) }}
	f.noteRefusal(f.keepListening(mcpwire.WithRefusals(ctx, func(_ string, err error) { f.noteRefusal(err) }), f.upstream, req))
}

// noteRefusal notes why the upstream refuses the subscription. Only answers of an upstream are for
// the client.
func (f *resourceFollower) noteRefusal(err error) {
	if _, isAnswer := errors.AsType[*mcp.Error](err); isAnswer {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.refusal = err
	}
}

// shortestPause and longestPause bound the time after which an upstream that has ended a
// subscription is asked again.
const shortestPause, longestPause = 50 * time.Millisecond, 30 * time.Second

// keepListening sends a subscriptions/listen request to an upstream, and again when it ends, until
// ctx ends, the upstream is held, or it refuses the first one with the error that keepListening
// returns.
func (s *subscription) keepListening(ctx context.Context, u *hub.Upstream, req *mcp.Request) (refusal error) {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		_, err := u.RoundTrip(ctx, callerOf(s.req), req)
		var answered *mcp.Error
		refused := errors.As(err, &answered)
		switch {
		case refused && !s.isAcknowledged():
			return err
		case !u.AwaitCallable(ctx):
			return nil
		}
		switch { // wait longer for an upstream that keeps ending subscriptions
		case refused:
			pause = longestPause
		case time.Since(began) > longestPause:
			pause = shortestPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// awaitHonoured waits for the upstream's acknowledgement and returns the client's URIs in it. If
// limit ends first, it returns all URIs of the client, because the upstream may still acknowledge
// them.
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

// reportHonoured sends the URIs of the first acknowledgement to awaitHonoured. Later calls do
// nothing.
func (f *resourceFollower) reportHonoured(honoured []string) {
	select {
	case f.firstHonoured <- honoured:
	default:
	}
}

// handleNotification handles a notification from the upstream. If an acknowledgement comes later
// than the client's own acknowledgement, changes may have been missed, so all its URIs count as
// changed.
func (f *resourceFollower) handleNotification(ctx context.Context, n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		f.passUpdate(ctx, uri, n.Params)
	case mcp.NotificationAcknowledged:
		var p mcp.ListenParams
		_ = mcp.Decode(n.Params, &p) // an unreadable acknowledgement has no URIs
		// This must precede reportHonoured, after which the client gets its own acknowledgement.
		missed := f.acknowledgedOnce || f.isAcknowledged()
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

// passUpdate tells the client that a resource has changed, under the client's URI.
func (f *resourceFollower) passUpdate(ctx context.Context, uri string, params json.RawMessage) {
	select {
	case <-f.acknowledged:
	case <-ctx.Done():
		return
	}
	wire, known := f.clientURIs[uri]
	if !known { // the upstream may report a resource below a subscribed one
		wire = f.gateway.shownURI(f.gateway.hub.Catalog(), f.upstream, uri)
	}
	if params == nil {
		params = []byte("{}")
	}
	if wire != uri || rawjson.Lookup(params, "uri") == nil {
		params = rawjson.Replace(params, "uri", rawjson.AppendString(nil, wire))
	}
	f.sendChange(ctx, mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: withoutSubscriptionID(params)})
}

// withoutSubscriptionID removes the id of the upstream's subscription from a change.
func withoutSubscriptionID(params json.RawMessage) json.RawMessage {
	meta := rawjson.Lookup(params, "_meta")
	if rawjson.Lookup(meta, mcpwire.MetaSubscriptionID) == nil {
		return params
	}
	if meta = rawjson.Set(meta, mcpwire.MetaSubscriptionID, nil); string(meta) == "{}" {
		meta = nil
	}
	return rawjson.Set(params, "_meta", meta)
}
