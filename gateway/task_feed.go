package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// taskFeeds share the subscriptions to tasks at upstreams: all subscriptions of a caller to tasks
// of one upstream need one subscriptions/listen there. The zero value is ready.
//
// A subscriptions/listen cannot be changed. When a subscriber wants more tasks, the feed opens a
// new one for all tasks and ends the old one after the acknowledgement of the new one, so no
// change is missed.
type taskFeeds struct {
	mu    sync.Mutex // guards everything of the feeds, their tasks and their subscribers
	byKey map[feedKey][]*taskFeed
}

// feedKey says which subscriptions may share a feed. A task belongs to a caller, and an upstream
// may heed what the client can do.
type feedKey struct {
	upstream     *hub.Upstream
	caller       hub.Caller
	capabilities string
}

// taskFeed follows tasks of an upstream for its subscribers.
type taskFeed struct {
	feeds  *taskFeeds
	key    feedKey
	ctx    context.Context // ends with the last subscriber, or with run
	cancel context.CancelFunc
	wake   chan struct{}  // has a token when run has something to do
	work   sync.WaitGroup // the goroutines of the feed

	lookWake chan struct{} // has a token when another task may need a look

	// All of these are guarded by feeds.mu.
	isAlone     bool // it has one subscriber, and is not in feeds.byKey
	tasks       map[string]*fedTask
	subscribers map[*taskSubscriber]bool
	current     *taskListen // acknowledged; nil if there is none
	next        *taskListen // takes the place of current when it is acknowledged; nil if none is needed
	hasNew      bool        // a subscriber has joined after the newest subscription was opened
	refusals    int         // consecutive ones, without an acknowledgement
	isLooking   bool        // a goroutine runs lookAtTasks
}

// joinFeed adds a subscriber for at most maxListenTasks ids. It must leave. The context gives the
// feed its values, and does not end it. A subscriber that is alone shares with no other.
func (s *taskFeeds) joinFeed(ctx context.Context, key feedKey, ids []string, isAcknowledged func() bool, isAlone bool) *taskSubscriber {
	sub := &taskSubscriber{ids: ids, isAcknowledged: isAcknowledged, wake: make(chan struct{}, 1), states: map[string]json.RawMessage{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.findFeed(key, ids)
	if f == nil || isAlone {
		f = &taskFeed{feeds: s, key: key, wake: make(chan struct{}, 1), lookWake: make(chan struct{}, 1), isAlone: isAlone,
			tasks: map[string]*fedTask{}, subscribers: map[*taskSubscriber]bool{}}
		f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if s.byKey == nil {
			s.byKey = map[feedKey][]*taskFeed{}
		}
		if !isAlone {
			s.byKey[key] = append(s.byKey[key], f)
		}
		f.work.Go(f.run)
	}
	sub.feed = f
	f.subscribers[sub], f.hasNew = true, true
	for _, id := range ids {
		if f.tasks[id] == nil {
			f.tasks[id] = &fedTask{subscribers: map[*taskSubscriber]bool{}}
		}
		f.tasks[id].subscribers[sub] = false
	}
	f.tellAccepted()
	f.startLooks()
	wakeUp(f.wake)
	return sub
}

// findFeed returns a feed that has room for the ids, or nil. s.mu is held.
func (s *taskFeeds) findFeed(key feedKey, ids []string) *taskFeed {
	for _, f := range s.byKey[key] {
		if f.next.isLate() {
			continue
		}
		total := len(f.tasks)
		for _, id := range ids {
			if f.tasks[id] == nil {
				total++
			}
		}
		if total <= maxListenTasks {
			return f
		}
	}
	return nil
}

// removeSubscriber reports whether sub was the last one.
func (f *taskFeed) removeSubscriber(sub *taskSubscriber) (isLast bool) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	delete(f.subscribers, sub)
	for _, id := range sub.ids {
		t := f.tasks[id]
		if delete(t.subscribers, sub); len(t.subscribers) == 0 {
			delete(f.tasks, id)
		}
	}
	if len(f.subscribers) > 0 {
		wakeUp(f.wake)
		return false
	}
	f.withdraw()
	return true
}

// withdraw lets no further subscriber join. feeds.mu is held.
func (f *taskFeed) withdraw() {
	others := slices.DeleteFunc(f.feeds.byKey[f.key], func(o *taskFeed) bool { return o == f })
	if f.feeds.byKey[f.key] = others; len(others) == 0 {
		delete(f.feeds.byKey, f.key)
	}
}

// run keeps a subscription of the upstream open, for all tasks that the subscribers want.
func (f *taskFeed) run() {
	defer f.endFeed()
	for pause := shortestPause; f.ctx.Err() == nil; {
		replaced, ended := f.changeListen()
		if replaced != nil {
			replaced.end()
			_ = timeout.Sleep(f.ctx, gatherTime) // the tasks of several new subscribers need one more
		}
		if ended == nil {
			select {
			case <-f.wake:
			case <-f.ctx.Done():
			}
			continue
		}
		ended.end()
		var answered *mcp.Error
		isRefused := errors.As(ended.err, &answered)
		if isRefused && ended.accepted == nil {
			f.handleRefusal(ended, answered.Code)
		}
		if !f.key.upstream.AwaitCallable(f.ctx) {
			return
		}
		switch { // wait longer for an upstream that keeps ending subscriptions
		case isRefused:
			pause = longestPause
		case time.Since(ended.began) > longestPause:
			pause = shortestPause
		}
		f.rest(pause)
		pause = min(2*pause, longestPause)
	}
}

// rest waits. A new subscriber ends the wait, as it would not wait in a feed of its own.
func (f *taskFeed) rest(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for !f.endsRest() {
		select {
		case <-timer.C:
			return
		case <-f.wake: // it may tell of a listen that has ended already
		case <-f.ctx.Done():
			return
		}
	}
}

// endsRest reports whether there is more to do than to open a subscription in place of one that
// has ended.
func (f *taskFeed) endsRest() bool {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	isNextDone := f.next != nil && (f.next.accepted != nil || f.next.hasEnded)
	return f.hasNew || isNextDone || f.current != nil && f.current.hasEnded
}

// changeListen makes next the current subscription when it is acknowledged, and opens another one
// if that is needed. replaced must be ended; ended has ended by itself, or has had no
// acknowledgement for long.
func (f *taskFeed) changeListen() (replaced, ended *taskListen) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	switch {
	case f.next != nil && f.next.hasEnded:
		ended, f.next = f.next, nil
		return nil, ended
	case f.current != nil && f.current.hasEnded:
		ended, f.current = f.current, nil
		return nil, ended
	case f.next != nil && f.next.accepted != nil:
		replaced, f.current, f.next, f.refusals = f.current, f.next, nil, 0
		f.tellAccepted()
		f.startLooks()
		wakeUp(f.wake) // more tasks may be wanted by now
		return replaced, nil
	case f.next.isLate() && len(f.subscribers) > 1: // because of some of the tasks, maybe
		f.separate(func(sub *taskSubscriber) bool { return !f.covers(sub) })
		ended, f.next = f.next, nil
		return nil, ended
	case f.next == nil && f.needsListen():
		if !f.isAlone && f.key.upstream.Definition().LoginFor != nil { // the request decides on the login
			f.separate(func(*taskSubscriber) bool { return true })
			return nil, nil
		}
		f.next, f.hasNew = f.openListen(), false
	}
	return nil, nil
}

// needsListen reports whether the upstream must be asked for other tasks: for more of them, or for
// less than half of them. feeds.mu is held.
func (f *taskFeed) needsListen() bool {
	wanted, covered := 0, 0
	for id, t := range f.tasks {
		if t.hasEnded {
			continue
		}
		if wanted++; f.current != nil && f.current.ids[id] {
			covered++
		}
	}
	return covered < wanted || f.current != nil && wanted > 0 && len(f.current.ids) > 2*wanted
}

// handleRefusal tells the subscribers without an answer that the upstream has refused their tasks.
// Several subscribers try again, each alone, since the upstream may have refused the tasks of
// others. If the error does not say that, the upstream may be about to end, and subscribers with an
// acknowledged client stay for one more try.
func (f *taskFeed) handleRefusal(refused *taskListen, code int) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	f.refusals++
	if len(f.subscribers) > 1 {
		isSure := code == jsonrpc.CodeInvalidParams || f.refusals > 1
		f.separate(func(sub *taskSubscriber) bool {
			return refused.mayCover(sub) && !f.covers(sub) && (isSure || !sub.isAcknowledged())
		})
		return
	}
	for sub := range f.subscribers {
		if refused.mayCover(sub) && !sub.isAcknowledged() {
			sub.setFate(fateEnd)
		}
	}
}

// separate gives subscribers a feed of their own. feeds.mu is held.
func (f *taskFeed) separate(which func(*taskSubscriber) bool) {
	for sub := range f.subscribers {
		if which(sub) {
			sub.setFate(fateAlone)
		}
	}
}

// endFeed ends the subscriptions, and the subscribers that are still there.
func (f *taskFeed) endFeed() {
	f.feeds.mu.Lock()
	f.cancel() // from here on startLooks starts no goroutine
	open := []*taskListen{f.current, f.next}
	f.current, f.next = nil, nil
	f.withdraw()
	for sub := range f.subscribers {
		sub.setFate(fateEnd)
	}
	f.feeds.mu.Unlock()
	for _, l := range open {
		if l != nil {
			l.end()
		}
	}
}

// covers reports whether the upstream has answered for all tasks of a subscriber. feeds.mu is
// held.
func (f *taskFeed) covers(sub *taskSubscriber) bool {
	return !slices.ContainsFunc(sub.ids, func(id string) bool {
		return !f.tasks[id].hasEnded && (f.current == nil || !f.current.ids[id])
	})
}

// tellAccepted tells the subscribers which of their tasks the upstream has accepted. feeds.mu is
// held.
func (f *taskFeed) tellAccepted() {
	for sub := range f.subscribers {
		if sub.hasAnswer || !f.covers(sub) {
			continue
		}
		sub.hasAnswer = true
		for _, id := range sub.ids {
			if f.tasks[id].hasEnded || f.current.accepted[id] {
				sub.accepted = append(sub.accepted, id)
			}
		}
		wakeUp(sub.wake)
	}
}
