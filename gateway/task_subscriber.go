package gateway

import "encoding/json"

// taskSubscriber is one client's part in a feed.
type taskSubscriber struct {
	feed           *taskFeed
	ids            []string
	isAcknowledged func() bool   // the client has its acknowledgement
	wake           chan struct{} // has a token after a change of the rest

	// All of these are guarded by feeds.mu.
	hasAnswer bool     // the upstream has answered for all ids
	accepted  []string // the ids that the upstream follows, after hasAnswer
	fate      subscriberFate
	order     []string                   // the ids in states, the oldest first
	states    map[string]json.RawMessage // the newest states that were not taken
}

// subscriberFate says how a subscriber continues.
type subscriberFate int

const (
	fateStay  subscriberFate = iota
	fateEnd                  // the upstream refuses the tasks, or is held
	fateAlone                // it needs a feed of its own
)

// leaveFeed removes the subscriber. The last one ends the feed and waits for its end.
func (sub *taskSubscriber) leaveFeed() {
	f := sub.feed
	if f.removeSubscriber(sub) {
		f.cancel()
		f.work.Wait()
	}
}

// setFate sets the fate of a subscriber, unless it is set. feeds.mu is held.
func (sub *taskSubscriber) setFate(fate subscriberFate) {
	if sub.fate == fateStay {
		sub.fate = fate
		wakeUp(sub.wake)
	}
}

// readAnswer returns the answer of the upstream, and how the subscriber continues.
func (sub *taskSubscriber) readAnswer() (accepted []string, hasAnswer bool, fate subscriberFate) {
	sub.feed.feeds.mu.Lock()
	defer sub.feed.feeds.mu.Unlock()
	return sub.accepted, sub.hasAnswer, sub.fate
}

// takeState returns the oldest state that was not taken. id is "" if there is none.
func (sub *taskSubscriber) takeState() (id string, state json.RawMessage) {
	sub.feed.feeds.mu.Lock()
	defer sub.feed.feeds.mu.Unlock()
	if len(sub.order) == 0 {
		return "", nil
	}
	id, sub.order = sub.order[0], sub.order[1:]
	state = sub.states[id]
	delete(sub.states, id)
	return id, state
}

// addState adds a state, which replaces an older one of the task. So a client that reads slowly
// delays no other. feeds.mu is held.
func (sub *taskSubscriber) addState(id string, state json.RawMessage) {
	if sub.states[id] == nil {
		sub.order = append(sub.order, id)
	}
	sub.states[id] = state
	wakeUp(sub.wake)
}

// wakeUp puts a token into a channel with room for one.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
