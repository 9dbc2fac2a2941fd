package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxListenTasks bounds the tasks that one subscription follows. The acknowledgement leaves out
// the others.
const maxListenTasks = 256

// taskFollower follows tasks of one upstream for one client's subscription.
type taskFollower struct {
	*subscription
	upstream      *hub.Upstream
	tasks         map[string]followedTask // by the upstream's ids
	firstAccepted chan []string           // receives the upstream's ids of the first acknowledgement; none if the upstream refuses

	mu       sync.Mutex        // guards the rest, and keeps the order of messages
	hasEnded map[string]bool   // the client knows the end of the task, by the client's id
	shown    map[string]string // identifies the newest state that the client has got, by the client's id
}

// followedTask is a task that a subscription follows.
type followedTask struct {
	sealed sealedTask
	id     string // the client's
}

// readTasks makes a follower for each upstream with tasks in the filter, and removes all
// extensions from the filter.
func (s *subscription) readTasks(ctx context.Context) error {
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
		if s.addKeptTask(ctx, id, id) {
			continue
		}
		t, err := s.gateway.openTask(s.req.Principal, id)
		if err != nil {
			continue
		}
		u := s.gateway.hub.Upstream(t.Upstream)
		if u == nil || !s.gateway.isOwner && runsInCluster(u) && s.addKeptTask(ctx, t.ID, id) {
			continue
		}
		s.taskFollowerOf(u).tasks[t.ID] = followedTask{t, id}
	}
	return nil
}

// addKeptTask follows a task of the gateway's own, of this process, another replica or an earlier
// process. It reports false if there is none with this id. shown is the client's id.
func (s *subscription) addKeptTask(ctx context.Context, id, shown string) bool {
	principal := s.req.Principal.ID
	if t := s.gateway.hosted.findTask(principal, id); t != nil && s.gateway.showsUpstream(t.bridge.upstream.Name()) {
		s.hosted = append(s.hosted, followedHosted{t, shown})
		return true
	}
	r, _ := s.gateway.hosted.findRecord(ctx, principal, id) // after an error the client asks itself
	if r == nil || !s.gateway.showsUpstream(storedUpstream(r)) {
		return false
	}
	if r.Status.IsTerminal() {
		s.stored = append(s.stored, followedRecord{r, shown})
	} else {
		s.remote = append(s.remote, followedRecord{r, shown})
	}
	return true
}

// followedHosted is a task of the gateway's own that a subscription follows.
type followedHosted struct {
	*hostedTask
	shown string // the client's id
}

// followedRecord is a stored task that a subscription follows.
type followedRecord struct {
	*tasks.Record
	shown string // the client's id
}

// taskFollowerOf returns the follower of an upstream's tasks, and makes it if there is none.
func (s *subscription) taskFollowerOf(u *hub.Upstream) *taskFollower {
	for _, f := range s.tasks {
		if f.upstream == u {
			return f
		}
	}
	f := &taskFollower{subscription: s, upstream: u, tasks: map[string]followedTask{}, firstAccepted: make(chan []string, 1),
		hasEnded: map[string]bool{}, shown: map[string]string{}}
	s.tasks = append(s.tasks, f)
	return f
}

// followTasks starts the followers, and writes the ids that their upstreams accept into the
// filter.
func (s *subscription) followTasks(ctx context.Context) error {
	if s.tasks == nil {
		return nil
	}
	for _, f := range s.tasks {
		s.work.Go(func() { f.followUpstream(ctx) })
	}
	limit, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	accepted := slices.Concat(s.followHosted(ctx), s.showStored(ctx), s.followRemote(ctx))
	for _, f := range s.tasks {
		accepted = append(accepted, f.awaitAccepted(limit)...)
	}
	raw, err := mcp.Encode(accepted)
	s.filter.Extensions = map[string]json.RawMessage{mcpwire.ListenTasks: raw}
	return err
}

// followUpstream takes part in the feed of the upstream until ctx ends or the upstream refuses the
// tasks.
func (f *taskFollower) followUpstream(ctx context.Context) {
	defer f.reportAccepted(nil)
	if f.gateway.checkScopes(ctx, f.upstream.Name(), f.req) != nil {
		return
	}
	key := feedKey{f.upstream, callerOf(f.req), string(f.req.ClientCapabilities)}
	isAlone := f.upstream.Definition().LoginFor != nil // the token of the request decides on the login
	for ctx.Err() == nil {
		sub := f.gateway.feeds.joinFeed(ctx, key, slices.Sorted(maps.Keys(f.tasks)), f.isAcknowledged, isAlone)
		fate := f.followFeed(ctx, sub)
		sub.leaveFeed()
		if fate != fateAlone {
			return
		}
		isAlone = true
	}
}

// followFeed passes the states that a feed tells to the client, and returns the fate of the
// subscriber, or fateStay if ctx has ended.
func (f *taskFollower) followFeed(ctx context.Context, sub *taskSubscriber) subscriberFate {
	acknowledged := f.acknowledged
	for {
		accepted, hasAnswer, fate := sub.readAnswer()
		if hasAnswer {
			f.reportAccepted(accepted)
		}
		if f.isAcknowledged() {
			acknowledged = nil
			f.showStates(ctx, sub)
		}
		if fate != fateStay {
			return fate
		}
		select {
		case <-sub.wake:
		case <-acknowledged:
		case <-ctx.Done():
			return fateStay
		}
	}
}

// showStates passes the states to the client that its subscriber has.
func (f *taskFollower) showStates(ctx context.Context, sub *taskSubscriber) {
	for ctx.Err() == nil {
		own, state := sub.takeState()
		if state == nil {
			return
		}
		f.showState(ctx, f.tasks[own], state)
	}
}

// showState passes the state of a task to the client, unless the client has got it from an earlier
// feed, or knows the end of the task.
func (f *taskFollower) showState(ctx context.Context, t followedTask, state json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	identity, _ := identifyState(state)
	if f.hasEnded[t.id] || f.shown[t.id] == identity || f.sendFailure(ctx, t, !hasEnded(state)) {
		return
	}
	f.hasEnded[t.id], f.shown[t.id] = hasEnded(state), identity
	f.sendChange(ctx, mcp.Notification{Method: mcpwire.NotificationTask, Params: f.gateway.showTask(f.upstream, state, t.id)})
}

// awaitAccepted returns the client's ids that the upstream accepts. If the upstream takes too
// long, it returns all, because the upstream may still accept them.
func (f *taskFollower) awaitAccepted(limit context.Context) (ids []string) {
	select {
	case own := <-f.firstAccepted:
		for _, id := range own {
			if t, known := f.tasks[id]; known {
				ids = append(ids, t.id)
			}
		}
	case <-limit.Done():
		for _, t := range f.tasks {
			ids = append(ids, t.id)
		}
		slices.Sort(ids)
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

// endWithdrawn tells the client which of its tasks have failed because their tool was withdrawn.
func (s *subscription) endWithdrawn(ctx context.Context) {
	for _, f := range s.tasks {
		f.endWithdrawn(ctx, true)
	}
}

// endHeld is endWithdrawn for a new subscription. An upstream that is ready tells the states of
// its tasks first, because a task that has ended there keeps its end.
func (s *subscription) endHeld(ctx context.Context) {
	for _, f := range s.tasks {
		u := s.gateway.hub.Upstream(f.upstream.Name())
		f.endWithdrawn(ctx, u == nil || u.State().Status.Held())
	}
}

// endWithdrawn tells the client which of the tasks have failed. mayRun says that those may still
// run of which the gateway does not know the end.
func (f *taskFollower) endWithdrawn(ctx context.Context, mayRun bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks {
		if !f.hasEnded[t.id] {
			f.sendFailure(ctx, t, mayRun)
		}
	}
}

// sendFailure tells the client that a task has failed because it was withdrawn. It reports false
// if the task has not. A task that does not run any more has failed only if that is known. f.mu is
// held.
func (f *taskFollower) sendFailure(ctx context.Context, t followedTask, mayRun bool) bool {
	failed := f.gateway.failed.findTask(t.id)
	if failed == nil && mayRun {
		failed = f.gateway.failWithdrawn(ctx, f.req, t.sealed, t.id)
	}
	if failed == nil {
		return false
	}
	f.hasEnded[t.id] = true
	f.sendTask(ctx, failed)
	return true
}

// sendTask sends the state of a task.
func (s *subscription) sendTask(ctx context.Context, task *mcpwire.Task) {
	if raw, err := mcp.Encode(task); err == nil {
		s.sendChange(ctx, mcp.Notification{Method: mcpwire.NotificationTask, Params: raw})
	}
}

// followHosted follows the tasks of the gateway's own, and returns their ids.
func (s *subscription) followHosted(ctx context.Context) []string {
	ids := []string{}
	for _, t := range s.hosted {
		upstream := t.bridge.upstream
		if s.gateway.checkScopes(ctx, upstream.Name(), s.req) != nil {
			continue
		}
		ids = append(ids, t.shown)
		s.work.Go(func() {
			if !s.awaitAcknowledgement(ctx) {
				return
			}
			t.followTask(ctx, func(task *mcpwire.Task) {
				raw, err := mcp.Encode(task)
				if err != nil {
					return
				}
				s.sendChange(ctx, mcp.Notification{Method: mcpwire.NotificationTask, Params: s.gateway.showTask(upstream, raw, t.shown)})
				if task.Result != nil {
					t.bridge.noteShown(showsResults(s.req))
				}
			})
		})
	}
	return ids
}

// awaitAcknowledgement waits until the client has its acknowledgement. It reports false if ctx
// ends first.
func (s *subscription) awaitAcknowledgement(ctx context.Context) bool {
	select {
	case <-s.acknowledged:
		return true
	case <-ctx.Done():
		return false
	}
}
