package gateway

import (
	"context"
	"errors"
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
	l := &listening{gateway: g, req: req, filter: p.Notifications, cancel: cancel}
	resources := l.agree()
	ack, err := mcp.Encode(&mcp.AcknowledgedParams{Notifications: l.filter})
	if err != nil {
		return nil, err
	}
	if err := req.Peer.Change(ctx, mcp.Change{Method: mcp.NotificationAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	for u, uris := range resources {
		work.Go(func() { l.follow(ctx, u, uris) })
	}
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

	mu    sync.Mutex
	kinds [4]bool // that have changed
	timer *time.Timer
}

// agree leaves in the filter what can be followed, and returns the URIs that each upstream knows its resources by.
func (l *listening) agree() map[*hub.Upstream][]string {
	l.filter.Extensions = nil
	c := l.gateway.hub.Catalog()
	byUpstream := map[*hub.Upstream][]string{}
	var kept []string
	for _, uri := range l.filter.ResourceSubscriptions {
		u, own := l.gateway.view.resource(c, uri)
		if u == nil || u.Info().Capabilities.Resources == nil || !u.Info().Capabilities.Resources.Subscribe {
			continue
		}
		kept = append(kept, uri)
		byUpstream[u] = append(byUpstream[u], own)
	}
	l.filter.ResourceSubscriptions = kept
	return byUpstream
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

// follow listens to resources of one upstream, for as long as the subscription lives. After an interruption all of them
// count as updated.
func (l *listening) follow(ctx context.Context, u *hub.Upstream, uris []string) {
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: uris}})
	if err != nil {
		return
	}
	again := false
	for ctx.Err() == nil {
		_, err := u.RoundTrip(ctx, caller(l.req), &mcp.Request{Method: mcp.MethodListen, Params: params, Notify: func(n mcp.Notification) {
			switch {
			case n.Method == mcp.NotificationResourceUpdated:
				uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
				l.updated(ctx, u, uri, n)
			case n.Method == mcp.NotificationAcknowledged && again:
				for _, uri := range uris {
					l.updated(ctx, u, uri, mcp.Notification{})
				}
			}
		}})
		again = true
		var answered *mcp.Error
		if errors.As(err, &answered) || !u.Revived(ctx) {
			return
		}
	}
}

// updated passes on that a resource has changed, under the URI that the client knows.
func (l *listening) updated(ctx context.Context, u *hub.Upstream, uri string, n mcp.Notification) {
	wire := l.gateway.view.wire(l.gateway.hub.Catalog(), u, uri)
	params := n.Params
	if params == nil || wire != uri {
		if params == nil {
			params = []byte("{}")
		}
		params = rawjson.Replace(params, "uri", rawjson.AppendString(nil, wire))
	}
	l.send(ctx, mcp.Change{Method: mcp.NotificationResourceUpdated, Params: params})
}
