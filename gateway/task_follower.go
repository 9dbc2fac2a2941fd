package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxListenTasks bounds the tasks that one subscription follows. The acknowledgement leaves out the
// others.
const maxListenTasks = 256

// taskFollower follows tasks of one upstream for one client's subscription.
type taskFollower struct {
	*subscription
	upstream      *hub.Upstream
	clientIDs     map[string]string // the client's ids, by the upstream's
	firstAccepted chan []string     // receives the upstream's ids of the first acknowledgement; none if the upstream refuses
}

// readTasks makes a follower for each upstream with tasks in the filter, and removes all extensions
// from the filter.
func (s *subscription) readTasks() error {
	raw := s.filter.Extensions[mcpwire.ListenTasks]
	s.filter.Extensions = nil
	if raw == nil || !mayHaveTasks(s.req) {
		return nil
	}
	if err := checkTasksDeclared(s.req); err != nil {
		return err
	}
	var wanted []string
	if err := mcp.Decode(raw, &wanted); err != nil {
		return mcp.InvalidParams("notifications.%s must be an array of strings", mcpwire.ListenTasks)
	}
	s.tasks = []*taskFollower{}
	for _, id := range wanted[:min(len(wanted), maxListenTasks)] {
		if t, u, err := s.gateway.openTask(s.req.Principal, id); err == nil {
			s.taskFollowerOf(u).clientIDs[t.ID] = id
		}
	}
	return nil
}

// taskFollowerOf returns the follower of an upstream's tasks, and makes it if there is none.
func (s *subscription) taskFollowerOf(u *hub.Upstream) *taskFollower {
	for _, f := range s.tasks {
		if f.upstream == u {
			return f
		}
	}
	f := &taskFollower{subscription: s, upstream: u, clientIDs: map[string]string{}, firstAccepted: make(chan []string, 1)}
	s.tasks = append(s.tasks, f)
	return f
}

// followTasks starts the followers, and writes the ids that their upstreams accept into the filter.
func (s *subscription) followTasks(ctx context.Context) error {
	if s.tasks == nil {
		return nil
	}
	for _, f := range s.tasks {
		s.work.Go(func() { f.followUpstream(ctx) })
	}
	limit, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	accepted := []string{}
	for _, f := range s.tasks {
		accepted = append(accepted, f.awaitAccepted(limit)...)
	}
	raw, err := mcp.Encode(accepted)
	s.filter.Extensions = map[string]json.RawMessage{mcpwire.ListenTasks: raw}
	return err
}

// followUpstream keeps the subscription at the upstream open until ctx ends or the upstream refuses it.
func (f *taskFollower) followUpstream(ctx context.Context) {
	defer f.reportAccepted(nil)
	if f.gateway.checkScopes(ctx, f.upstream, f.req) != nil {
		return
	}
	ids, err := mcp.Encode(slices.Sorted(maps.Keys(f.clientIDs)))
	if err != nil {
		return
	}
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: mcp.SubscriptionFilter{Extensions: map[string]json.RawMessage{mcpwire.ListenTasks: ids}}})
	if err != nil {
		return
	}
	f.keepListening(ctx, f.upstream, &mcp.Request{
		Method: mcp.MethodListen, Params: params, ClientCapabilities: f.req.ClientCapabilities,
		Notify: func(n mcp.Notification) { f.handleNotification(ctx, n) },
	})
}

// awaitAccepted returns the client's ids that the upstream accepts. If the upstream takes too long, it
// returns all, because the upstream may still accept them.
func (f *taskFollower) awaitAccepted(limit context.Context) (ids []string) {
	select {
	case own := <-f.firstAccepted:
		for _, id := range own {
			if wire, known := f.clientIDs[id]; known {
				ids = append(ids, wire)
			}
		}
	case <-limit.Done():
		ids = slices.Sorted(maps.Values(f.clientIDs))
	}
	return ids
}

// reportAccepted delivers the ids of the first acknowledgement. Later calls do nothing.
func (f *taskFollower) reportAccepted(own []string) {
	select {
	case f.firstAccepted <- own:
	default:
	}
}

// handleNotification takes a notification of the upstream's subscription.
func (f *taskFollower) handleNotification(ctx context.Context, n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationAcknowledged:
		var own []string
		for it := rawjson.Array(rawjson.Lookup(rawjson.Lookup(n.Params, "notifications"), mcpwire.ListenTasks)); it.Next(); {
			if id, ok := rawjson.String(it.Value); ok {
				own = append(own, id)
			}
		}
		f.reportAccepted(own)
	case mcpwire.NotificationTask:
		own, _ := rawjson.String(rawjson.Lookup(n.Params, "taskId"))
		id, known := f.clientIDs[own]
		if !known {
			return
		}
		select {
		case <-f.acknowledged:
		case <-ctx.Done():
			return
		}
		params := f.gateway.showTask(f.upstream, withoutSubscriptionID(n.Params), id)
		f.sendChange(ctx, mcp.Notification{Method: n.Method, Params: params})
	}
}
