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

// gatherTime is how long list changes are gathered: servers come up together.
const gatherTime = 20 * time.Millisecond

// serveListen answers subscriptions/listen: it passes on changes of the catalog, and of the resources that are asked for.
func (g *Gateway) serveListen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	if !rawjson.IsObject(rawjson.Lookup(req.Params, "notifications")) {
		return nil, mcp.InvalidParams("%s needs params.notifications, an object that says what to listen to", req.Method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &subscription{gateway: g, req: req, filter: p.Notifications, cancel: cancel, acknowledged: make(chan struct{})}
	defer l.work.Wait()
	defer cancel(nil)
	events := g.hub.Events(ctx, hub.CatalogChanged, hub.StateChanged) // from before the acknowledgement on
	l.subscribeResources(ctx)
	ack, err := mcp.Encode(&mcp.AcknowledgedParams{Notifications: l.filter})
	if err != nil {
		return nil, err
	}
	if err := req.Peer.Change(ctx, mcp.Change{Method: mcp.NotificationAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	close(l.acknowledged)
	defer l.stopTimer()
	for e := range events {
		if g.showsUpstream(e.Upstream) || e.Missed > 0 {
			l.handleEvent(ctx, e)
		}
	}
	return nil, context.Cause(ctx)
}

// subscription is one subscription of a client.
type subscription struct {
	gateway      *Gateway
	req          *mcp.Request
	cancel       context.CancelCauseFunc
	acknowledged chan struct{} // closed when the client has been told what is followed
	work         sync.WaitGroup
	filter       mcp.SubscriptionFilter // what the client wants, and from told on what it gets

	mu           sync.Mutex
	changedKinds [4]bool // that have changed
	timer        *time.Timer
	followers    map[*resourceFollower]struct{} // that listen now
}

// subscribeTimeout bounds how long upstreams have for the subscriptions to their resources, before the client is told of its own:
// what changes from then on is passed on. It is told of those that take longer as if all had changed.
const subscribeTimeout = 2 * time.Second

// subscribeResources follows the resources of the filter, and leaves those in it that can be followed.
func (l *subscription) subscribeResources(ctx context.Context) {
	l.filter.Extensions = nil
	wanted := l.filter.ResourceSubscriptions
	if len(wanted) == 0 {
		return
	}
	l.gateway.awaitUpstreams(ctx) // they may be of one that is starting
	following := l.followResources(ctx)
	limit, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	honoured := map[string]bool{}
	for _, f := range following {
		for _, uri := range f.awaitHonoured(limit) {
			honoured[uri] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filter.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(wanted), func(uri string) bool { return !honoured[uri] })
}

// followResources begins to follow those of the client's resources that nobody follows and somebody has: at first, and when an upstream
// has come, or come back.
func (l *subscription) followResources(ctx context.Context) []*resourceFollower {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	following := l.newFollowers()
	for _, f := range following {
		if l.followers == nil {
			l.followers = map[*resourceFollower]struct{}{}
		}
		l.followers[f] = struct{}{}
		its, stop := context.WithCancel(ctx)
		f.cancel = stop
		l.work.Go(func() {
			f.run(its)
			stop()
			l.followerEnded(ctx, f)
		})
	}
	return following
}

// newFollowers sorts the resources that can be followed, and are not, by their upstreams; l.mu is held.
func (l *subscription) newFollowers() (all []*resourceFollower) {
	var c *hub.Catalog
	of, followed := map[*hub.Upstream]*resourceFollower{}, l.followedURIs()
	for _, uri := range l.filter.ResourceSubscriptions {
		if followed[uri] {
			continue
		}
		if c == nil {
			c = l.gateway.hub.Catalog()
		}
		u, own := l.gateway.findResource(c, uri)
		if u == nil || !maySubscribe(u) {
			continue
		}
		if of[u] == nil {
			of[u] = &resourceFollower{subscription: l, upstream: u, clientURIs: map[string]string{}, firstHonoured: make(chan []string, 1)}
			all = append(all, of[u])
		}
		of[u].clientURIs[own] = uri
	}
	return all
}

// followedURIs are the resources of the client that are followed; l.mu is held.
func (l *subscription) followedURIs() map[string]bool {
	all := map[string]bool{}
	for f := range l.followers {
		for _, uri := range f.clientURIs {
			all[uri] = true
		}
	}
	return all
}

// endStaleFollowers ends the followers of resources that another upstream has by now; who follows them from then on is found when they
// have left.
func (l *subscription) endStaleFollowers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.gateway.hub.Catalog()
	for f := range l.followers {
		for _, uri := range f.clientURIs {
			if u, _ := l.gateway.findResource(c, uri); u != nil && u != f.upstream {
				f.cancel()
				break
			}
		}
	}
}

// maySubscribe reports whether the resources of an upstream may be followed: what one can do that has not run yet is seen when
// it is asked.
func maySubscribe(u *hub.Upstream) bool {
	status, i := u.State().Status, u.Info()
	if status != hub.Ready { // what is known may be of another server that was there before
		return !status.Held()
	}
	return i.Capabilities.Resources != nil && i.Capabilities.Resources.Subscribe
}

// followerEnded forgets a follower that has ended. Its upstream may be there again by now.
func (l *subscription) followerEnded(ctx context.Context, f *resourceFollower) {
	l.mu.Lock()
	delete(l.followers, f)
	l.mu.Unlock()
	if l.isAcknowledged() {
		l.followResources(ctx)
	}
}

// handleEvent takes what has happened to an upstream.
func (l *subscription) handleEvent(ctx context.Context, e hub.Event) {
	if e.Kind == hub.CatalogChanged || e.Missed > 0 {
		l.gatherChanges(ctx, e)
		l.endStaleFollowers()
	}
	if e.Kind == hub.CatalogChanged || e.State.Status == hub.Ready || e.Missed > 0 {
		l.followResources(ctx)
	}
}

// gatherChanges keeps the changes of the catalog for a while, to tell of all at once.
func (l *subscription) gatherChanges(ctx context.Context, e hub.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range e.Changed {
		l.changedKinds[k] = true
	}
	if e.Missed > 0 {
		l.changedKinds = [4]bool{true, true, true, true}
	}
	if l.timer == nil {
		l.work.Add(1)
		l.timer = time.AfterFunc(gatherTime, func() {
			defer l.work.Done()
			l.sendListChanges(ctx)
		})
	}
}

func (l *subscription) stopTimer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && l.timer.Stop() {
		l.work.Done()
	}
}

// sendListChanges passes on what has been gathered.
func (l *subscription) sendListChanges(ctx context.Context) {
	l.mu.Lock()
	kinds := l.changedKinds
	l.changedKinds, l.timer = [4]bool{}, nil
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
			l.sendChange(ctx, mcp.Change{Method: change.method})
		}
	}
}

func (l *subscription) sendChange(ctx context.Context, change mcp.Change) {
	if err := l.req.Peer.Change(ctx, change); err != nil {
		l.cancel(err)
	}
}

// isAcknowledged reports whether the client has been told already what is followed.
func (l *subscription) isAcknowledged() bool {
	select {
	case <-l.acknowledged:
		return true
	default:
		return false
	}
}
