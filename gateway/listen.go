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

// gatherTime is how long list changes are collected before the client is told. Servers often become
// ready together.
const gatherTime = 20 * time.Millisecond

// serveListen answers subscriptions/listen. It passes on changes of the catalog and of the
// resources in the filter.
func (g *Gateway) serveListen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	if !rawjson.IsObject(rawjson.Lookup(req.Params, "notifications")) {
		return nil, mcp.InvalidParams("%s needs params.notifications, an object that says what to listen to", req.Method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &subscription{gateway: g, req: req, filter: p.Notifications, cancel: cancel, acknowledged: make(chan struct{})}
	defer s.work.Wait()
	defer cancel(nil)
	events := g.hub.Events(ctx, hub.CatalogChanged, hub.StateChanged) // begins before the acknowledgement, so that no change is missed
	if err := s.readTasks(ctx); err != nil {
		return nil, err
	}
	if err := s.subscribeResources(ctx); err != nil {
		return nil, err
	}
	if err := s.followTasks(ctx); err != nil {
		return nil, err
	}
	ack, err := mcp.Encode(&mcp.ListenParams{Notifications: s.filter})
	if err != nil {
		return nil, err
	}
	if err := req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	close(s.acknowledged)
	s.endHeld(ctx)
	defer s.stopTimer()
	for e := range events {
		if g.showsUpstream(e.Upstream) || e.Missed > 0 {
			s.handleEvent(ctx, e)
		}
	}
	return nil, context.Cause(ctx)
}

// subscription is a client's subscriptions/listen request.
type subscription struct {
	gateway      *Gateway
	req          *mcp.Request
	cancel       context.CancelCauseFunc
	acknowledged chan struct{} // closed when the client has its acknowledgement
	work         sync.WaitGroup
	filter       mcp.SubscriptionFilter // the client's wish; after the acknowledgement, the honoured part of it
	tasks        []*taskFollower
	hosted       []followedHosted // tasks of the gateway's own that the client follows
	stored       []followedRecord // those of an earlier process, which have ended
	remote       []followedRecord // tasks of other replicas, which run

	mu        sync.Mutex
	changed   map[string]bool // methods of notifications that were not sent to the client yet
	timer     *time.Timer
	followers map[*resourceFollower]struct{} // followers that run
}

// subscribeTimeout limits how long upstreams may take to subscribe to resources before the client
// gets its acknowledgement. A resource with a later subscription is reported as changed, because a
// change may have been missed.
const subscribeTimeout = 2 * time.Second

// subscribeResources starts followers for the resources of the filter, and removes the resources
// that no upstream honours from the filter. A legacy client gets the error of the upstream if none
// is left, which its era has a place for. A client of 2026-07-28 must get an acknowledgement.
func (s *subscription) subscribeResources(ctx context.Context) error {
	wanted := s.filter.ResourceSubscriptions
	if len(wanted) == 0 {
		return nil
	}
	s.gateway.awaitUpstreams(ctx) // the resources may belong to a starting upstream
	following := s.followResources(ctx)
	limit, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	honoured := map[string]bool{}
	for _, f := range following {
		for _, uri := range f.awaitHonoured(limit) {
			honoured[uri] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filter.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(wanted), func(uri string) bool { return !honoured[uri] })
	if len(s.filter.ResourceSubscriptions) > 0 || s.req.Revision.Modern() {
		return nil
	}
	for _, f := range following {
		if f.refusal != nil {
			return f.refusal
		}
	}
	return nil
}

// followResources starts followers for the client's resources that have an upstream and no
// follower. It runs at first, and again when an upstream appears or returns.
func (s *subscription) followResources(ctx context.Context) []*resourceFollower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	following := s.newFollowers()
	for _, f := range following {
		if s.followers == nil {
			s.followers = map[*resourceFollower]struct{}{}
		}
		s.followers[f] = struct{}{}
		followCtx, stop := context.WithCancel(ctx)
		f.cancel = stop
		s.work.Go(func() {
			f.followResource(followCtx)
			stop()
			s.followerEnded(ctx, f)
		})
	}
	return following
}

// newFollowers returns a follower for each upstream with resources to follow. s.mu is held.
func (s *subscription) newFollowers() (all []*resourceFollower) {
	var c *itemCatalog
	byUpstream, followed := map[*hub.Upstream]*resourceFollower{}, s.followedURIs()
	for _, uri := range s.filter.ResourceSubscriptions {
		if followed[uri] {
			continue
		}
		if c == nil {
			c = s.gateway.hub.Catalog()
		}
		u, own := s.gateway.findResource(c, uri)
		if u == nil || !maySubscribe(u) {
			continue
		}
		if byUpstream[u] == nil {
			byUpstream[u] = &resourceFollower{subscription: s, upstream: u, clientURIs: map[string]string{}, firstHonoured: make(chan []string, 1)}
			all = append(all, byUpstream[u])
		}
		byUpstream[u].clientURIs[own] = uri
	}
	return all
}

// followedURIs returns the client's URIs that have a follower. s.mu is held.
func (s *subscription) followedURIs() map[string]bool {
	all := map[string]bool{}
	for f := range s.followers {
		for _, uri := range f.clientURIs {
			all[uri] = true
		}
	}
	return all
}

// endStaleFollowers ends followers of resources that have moved to another upstream. When they have
// ended, followResources finds the new one.
func (s *subscription) endStaleFollowers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.gateway.hub.Catalog()
	for f := range s.followers {
		for _, uri := range f.clientURIs {
			if u, _ := s.gateway.findResource(c, uri); u != nil && u != f.upstream {
				f.cancel()
				break
			}
		}
	}
}

// maySubscribe reports whether an upstream may accept subscriptions to resources. Capabilities are
// known only while it is ready.
func maySubscribe(u *hub.Upstream) bool {
	status, i := u.State().Status, u.Server()
	if status != hub.Ready { // the last known capabilities may belong to an earlier server
		return !status.Held()
	}
	return i.Capabilities.Resources != nil && i.Capabilities.Resources.Subscribe
}

// followerEnded removes a follower. Its upstream may have returned by now, so the resources are
// followed again.
func (s *subscription) followerEnded(ctx context.Context, f *resourceFollower) {
	s.mu.Lock()
	delete(s.followers, f)
	s.mu.Unlock()
	if s.isAcknowledged() {
		s.followResources(ctx)
	}
}

// handleEvent takes an event of an upstream.
func (s *subscription) handleEvent(ctx context.Context, e hub.Event) {
	s.endWithdrawn(ctx)
	if e.Kind == hub.CatalogChanged || e.Missed > 0 {
		s.gatherChanges(ctx, e)
		s.endStaleFollowers()
	}
	if e.Kind == hub.CatalogChanged || e.State.Status == hub.Ready || e.Missed > 0 {
		s.followResources(ctx)
	}
}

// gatherChanges adds the lists of an event to changed, and starts the timer that sends them.
func (s *subscription) gatherChanges(ctx context.Context, e hub.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := e.Changed
	if e.Missed > 0 {
		changed = []string{mcp.NotificationToolsChanged, mcp.NotificationPromptsChanged, mcp.NotificationResourcesChanged}
	}
	if s.changed == nil {
		s.changed = map[string]bool{}
	}
	for _, method := range changed {
		s.changed[method] = true
	}
	if s.timer == nil {
		s.work.Add(1)
		s.timer = time.AfterFunc(gatherTime, func() {
			defer s.work.Done()
			s.sendListChanges(ctx)
		})
	}
}

// stopTimer ends the timer of gatherChanges.
func (s *subscription) stopTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && s.timer.Stop() {
		s.work.Done()
	}
}

// sendListChanges sends the notifications in changed that the filter asks for.
func (s *subscription) sendListChanges(ctx context.Context) {
	s.mu.Lock()
	changed := s.changed
	s.changed, s.timer = nil, nil
	s.mu.Unlock()
	for _, list := range []struct {
		wanted bool
		method string
	}{
		{s.filter.ToolsListChanged, mcp.NotificationToolsChanged},
		{s.filter.PromptsListChanged, mcp.NotificationPromptsChanged},
		{s.filter.ResourcesListChanged, mcp.NotificationResourcesChanged},
	} {
		if list.wanted && changed[list.method] {
			s.sendChange(ctx, mcp.Notification{Method: list.method})
		}
	}
}

// sendChange sends a change, and ends the subscription if that fails.
func (s *subscription) sendChange(ctx context.Context, change mcp.Notification) {
	if err := s.req.Peer.Change(ctx, change); err != nil {
		s.cancel(err)
	}
}

// isAcknowledged reports whether the client has its acknowledgement.
func (s *subscription) isAcknowledged() bool {
	select {
	case <-s.acknowledged:
		return true
	default:
		return false
	}
}
