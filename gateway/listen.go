package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// gathering is how long list changes are gathered: servers come up together.
const gathering = 20 * time.Millisecond

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
	l := &listening{gateway: g, req: req, filter: p.Notifications, cancel: cancel, told: make(chan struct{})}
	defer l.work.Wait()
	defer cancel(nil)
	events := g.hub.Events(ctx, hub.CatalogChanged, hub.StateChanged) // from before the acknowledgement on
	l.subscribe(ctx)
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
		if g.view.shows(e.Upstream) || e.Missed > 0 {
			l.changed(ctx, e)
		}
	}
	return nil, context.Cause(ctx)
}

// listening is one subscription of a client.
type listening struct {
	gateway *Gateway
	req     *mcp.Request
	cancel  context.CancelCauseFunc
	told    chan struct{} // closed when the client has been told what is followed
	work    sync.WaitGroup
	filter  mcp.SubscriptionFilter // what the client wants, and from told on what it gets

	mu        sync.Mutex
	kinds     [4]bool // that have changed
	timer     *time.Timer
	followers map[*follower]struct{} // that listen now
}

// subscribing bounds how long upstreams have for the subscriptions to their resources, before the client is told of its own:
// what changes from then on is passed on. It is told of those that take longer as if all had changed.
const subscribing = 2 * time.Second

// subscribe follows the resources of the filter, and leaves those in it that can be followed.
func (l *listening) subscribe(ctx context.Context) {
	l.filter.Extensions = nil
	wanted := l.filter.ResourceSubscriptions
	if len(wanted) == 0 {
		return
	}
	l.gateway.wait(ctx) // they may be of one that is starting
	following := l.follow(ctx)
	limit, cancel := context.WithTimeout(ctx, subscribing)
	defer cancel()
	honoured := map[string]bool{}
	for _, f := range following {
		for _, uri := range f.honours(limit) {
			honoured[uri] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filter.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(wanted), func(uri string) bool { return !honoured[uri] })
}

// follow begins to follow those of the client's resources that nobody follows and somebody has: at first, and when an upstream
// has come, or come back.
func (l *listening) follow(ctx context.Context) []*follower {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	following := l.agree()
	for _, f := range following {
		if l.followers == nil {
			l.followers = map[*follower]struct{}{}
		}
		l.followers[f] = struct{}{}
		its, stop := context.WithCancel(ctx)
		f.stop = stop
		l.work.Go(func() {
			f.run(its)
			stop()
			l.left(ctx, f)
		})
	}
	return following
}

// agree sorts the resources that can be followed, and are not, by their upstreams; l.mu is held.
func (l *listening) agree() (all []*follower) {
	var c *hub.Catalog
	of, followed := map[*hub.Upstream]*follower{}, l.followed()
	for _, uri := range l.filter.ResourceSubscriptions {
		if followed[uri] {
			continue
		}
		if c == nil {
			c = l.gateway.hub.Catalog()
		}
		u, own := l.gateway.view.resource(c, uri)
		if u == nil || !subscribable(u) {
			continue
		}
		if of[u] == nil {
			of[u] = &follower{listening: l, upstream: u, names: map[string]string{}, begun: make(chan []string, 1)}
			all = append(all, of[u])
		}
		of[u].names[own] = uri
	}
	return all
}

// followed are the resources of the client that are followed; l.mu is held.
func (l *listening) followed() map[string]bool {
	all := map[string]bool{}
	for f := range l.followers {
		for _, uri := range f.names {
			all[uri] = true
		}
	}
	return all
}

// review ends the followers of resources that another upstream has by now; who follows them from then on is found when they
// have left.
func (l *listening) review() {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.gateway.hub.Catalog()
	for f := range l.followers {
		for _, uri := range f.names {
			if u, _ := l.gateway.view.resource(c, uri); u != nil && u != f.upstream {
				f.stop()
				break
			}
		}
	}
}

// subscribable reports whether the resources of an upstream may be followed: what one can do that has not run yet is seen when
// it is asked.
func subscribable(u *hub.Upstream) bool {
	status, i := u.State().Status, u.Info()
	if status != hub.Ready { // what is known may be of another server that was there before
		return !status.Held()
	}
	return i.Capabilities.Resources != nil && i.Capabilities.Resources.Subscribe
}

// left forgets a follower that has ended. Its upstream may be there again by now.
func (l *listening) left(ctx context.Context, f *follower) {
	l.mu.Lock()
	delete(l.followers, f)
	l.mu.Unlock()
	if l.late() {
		l.follow(ctx)
	}
}

// changed takes what has happened to an upstream.
func (l *listening) changed(ctx context.Context, e hub.Event) {
	if e.Kind == hub.CatalogChanged || e.Missed > 0 {
		l.gather(ctx, e)
		l.review()
	}
	if e.Kind == hub.CatalogChanged || e.State.Status == hub.Ready || e.Missed > 0 {
		l.follow(ctx)
	}
}

// gather keeps the changes of the catalog for a while, to tell of all at once.
func (l *listening) gather(ctx context.Context, e hub.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range e.Changed {
		l.kinds[k] = true
	}
	if e.Missed > 0 {
		l.kinds = [4]bool{true, true, true, true}
	}
	if l.timer == nil {
		l.work.Add(1)
		l.timer = time.AfterFunc(gathering, func() {
			defer l.work.Done()
			l.tell(ctx)
		})
	}
}

func (l *listening) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && l.timer.Stop() {
		l.work.Done()
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

// late reports whether the client has been told already what is followed.
func (l *listening) late() bool {
	select {
	case <-l.told:
		return true
	default:
		return false
	}
}
