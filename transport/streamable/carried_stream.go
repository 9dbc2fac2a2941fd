package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// carriedStream is the part of a [sessionStream] for replicas. A client that resumes the stream at
// a replica expects that it has missed nothing. The replica that carried the stream before stores
// each change for it, and subscribes until this one does. But that replica may have ended, and the
// changes since are in no store. So this one asks for it; without an answer it tells the client
// that everything may have changed that the client listens to. The fields are guarded by the
// stream's mu.
//
// The takeover must not lose a change, and should not tell the client of changes that never were:
//
//   - The new replica subscribes, reads the stored events, and only then sends peerTaken.
//   - The old one keeps its subscription for handoverOverlap, because a handler may hold back a
//     change from before the new subscription, and until its own handover has ended. Then it ends
//     its subscription and sends what it knows: peerCarried, peerQueued or peerMissed.
//   - After peerCarried, if the new one has not read the event that it names, it reads the store
//     again, and sends the frames that it has not sent itself. After peerQueued, it sends the
//     frames in the message. After peerMissed, it reports everything.
type carriedStream struct {
	lists      json.RawMessage // the parameters of the handler's acknowledgement
	isFresh    bool            // the subscription has begun in this process, and nothing is known of the time before
	isReleased bool            // another replica has taken the stream; changes are dropped here
	wasTaken   bool            // isReleased, when the fresh subscription began
	isInDoubt  bool            // the client may have an event of this process and not a change from before it
	joins      uint64          // counts the connections that have joined

	waiting   *time.Timer // calls reportMissed; nil if the client has missed nothing
	takeover  uint64      // changes with each wait, so that a late answer to an earlier peerTaken is ignored
	settledBy settlement  // the answer that ends the wait
	after     string      // for settledByEvent: the id of the last event that the client had when the wait began
	ownFrames [][]byte    // sent or stored by this process since the wait began
}

// settlement says which answer of another replica settles that the client has missed nothing.
type settlement string

const (
	settledByNothing settlement = "nothing" // the client is told of everything
	settledByEvent   settlement = "event"   // a peerCarried with an event that the client has, or gets now
	settledByAny     settlement = "any"     // the client knows no event: a peerCarried or peerQueued
)

// defaultCarrierWait is how long the replica that carried a stream may take to say so. It needs
// handoverOverlap, and three times that if the client has just left it.
const defaultCarrierWait = time.Second

// awaitCarrier is called when a connection joins the stream. resumes reports whether the client has
// sent Last-Event-ID. last is that id, or empty if the store has forgotten it. If the client may
// miss changes and no other replica says that it has carried the stream, the client is told of
// everything. st.mu is held.
func (st *sessionStream) awaitCarrier(resumes bool, last string) {
	isFresh, settledBy := st.isFresh, st.chooseSettlement(resumes, last)
	if isFresh && resumes {
		st.hasUnstored = false // the answer to peerTaken covers the time until now
	}
	st.joins++
	st.isFresh, st.isReleased, st.wasTaken = false, false, false
	switch {
	case settledBy == "" || st.ended:
	case st.waiting == nil:
		st.takeover++
		st.settledBy, st.after = settledBy, last
		st.waiting = time.AfterFunc(st.session.server.carrierWait, st.reportMissed)
	case isFresh: // it waits with the older event
		st.takeover++
	}
}

// chooseSettlement returns how it is settled that a client which joins has missed nothing, or "" if
// that is known. st.mu is held.
func (st *sessionStream) chooseSettlement(resumes bool, last string) settlement {
	isSubscribed := st.runner != nil || st.handover != nil
	switch {
	case st.isInDoubt || !isSubscribed || st.hasUnstored && !st.isFresh:
		return settledByNothing
	case st.isFresh && resumes && last != "":
		return settledByEvent
	case st.isFresh && resumes || st.hasUnstored:
		return settledByNothing
	case st.isFresh && st.wasTaken:
		return settledByAny
	}
	return ""
}

// newTakeover returns the message that this replica carries the stream for a GET that has joined.
func (st *sessionStream) newTakeover(r *http.Request, resumes bool) peerMessage {
	m := st.session.server.newPeerMessage(r, st.session, peerTaken)
	st.lockOrCutOff()
	defer st.mu.Unlock()
	m.Takeover, m.Resumes = st.takeover, resumes
	return m
}

// yieldStream lets the sender of a peerTaken carry the session's stream, and answers it. It reports
// whether this process has left the stream to it.
func (s *Server) yieldStream(ctx context.Context, ss *session, m peerMessage) (isReleased bool) {
	if ss.currentSessionStream() == nil && len(ss.edge.Subscriptions()) == 0 {
		return true // nothing is written to the stream here
	}
	st := ss.ensureSessionStream()
	answer, isReleased := st.endCarrying(ctx, m.Resumes)
	if answer.Kind == "" {
		return isReleased
	}
	answer.From, answer.Session, answer.Principal, answer.Takeover = s.edge.Instance(), m.Session, m.Principal, m.Takeover
	isTaken, err := s.askPeer(ctx, m.From, answer)
	if answer.Kind != peerCarried && (err != nil || !isTaken) {
		st.noteDoubt() // the next replica is told
	}
	return isReleased
}

// endCarrying ends the subscription of a stream without a connection, because another replica
// carries the stream now. First it waits for the changes that are on their way. resumes reports
// whether the client has sent Last-Event-ID to that replica. The kind of the answer is empty if
// this process does not know what the client has missed.
func (st *sessionStream) endCarrying(ctx context.Context, resumes bool) (answer peerMessage, isReleased bool) {
	joins, hasRunner := st.countJoins()
	if hasRunner && timeout.Sleep(ctx, handoverOverlap) != nil {
		return answer, false
	}
	st.lockOrCutOff()
	defer st.mu.Unlock()
	for st.handover != nil {
		ended := st.handover
		st.mu.Unlock()
		<-ended // the handler has a limited time to begin its subscription
		st.lockOrCutOff()
	}
	st.storeQueuedAgain()
	answer = st.describeCarrying(resumes)
	if st.joins != joins || st.conn != nil || st.runner != nil && st.runner.onGET {
		return answer, false // the client has come back
	}
	st.stopRunners()
	st.stopWaiting()
	st.queued, st.hasUnstored, st.isInDoubt, st.isReleased = nil, false, false, true
	return answer, true
}

// countJoins returns the number of connections that have joined, and whether the stream has a
// subscription in this process, or begins one.
func (st *sessionStream) countJoins() (joins uint64, hasRunner bool) {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	return st.joins, st.runner != nil || st.handover != nil
}

// describeCarrying returns the answer to a peerTaken. st.mu is held.
func (st *sessionStream) describeCarrying(resumes bool) peerMessage {
	knowsAll := st.runner != nil && st.runner.isComplete() && !st.isFresh && st.waiting == nil && !st.ended
	isUnstored := st.hasUnstored || slices.ContainsFunc(st.queued, func(q queuedFrame) bool { return q.id == "" })
	isAway := st.conn == nil
	switch {
	case st.isInDoubt, knowsAll && isAway && resumes && isUnstored, isAway && !resumes && st.hasUnstored:
		return peerMessage{Kind: peerMissed}
	case isAway && !resumes && len(st.queued) > 0:
		answer := peerMessage{Kind: peerQueued, KnowsAll: knowsAll}
		for _, q := range st.queued {
			answer.Frames = append(answer.Frames, q.frame)
		}
		return answer
	case knowsAll && !st.hasUnstored:
		return peerMessage{Kind: peerCarried, LastEvent: st.lastEvent}
	}
	return peerMessage{}
}

// noteAnswer takes the answer to a peerTaken of this process. It reports whether the sender can
// forget what it knows of the stream.
func (ss *session) noteAnswer(ctx context.Context, m peerMessage) bool {
	st := ss.currentSessionStream()
	if st == nil {
		return false
	}
	st.lockOrCutOff()
	defer st.mu.Unlock()
	switch m.Kind {
	case peerCarried:
		return st.noteCarried(ctx, m)
	case peerQueued:
		return st.noteQueued(m)
	default:
		return st.noteMissed()
	}
}

// noteCarried takes a peerCarried: another replica has carried the stream until now. It reports
// whether that settles what the client has missed. st.mu is held; it is free while the store is
// read.
func (st *sessionStream) noteCarried(ctx context.Context, m peerMessage) bool {
	if !st.awaits(m) {
		return false
	}
	if st.settledBy == settledByEvent && st.after != m.LastEvent {
		after := st.after
		st.mu.Unlock()
		stored := st.session.server.eventsUntil(ctx, after, m.LastEvent)
		st.lockOrCutOff()
		if len(stored) == 0 || !st.awaits(m) {
			return false
		}
		st.sendFramesOfOthers(stored)
	}
	st.isInDoubt = false
	return st.stopWaiting()
}

// awaits reports whether an answer can settle that the client has missed nothing: not if an event
// of this process is missing in the store. st.mu is held.
func (st *sessionStream) awaits(m peerMessage) bool {
	return st.waiting != nil && st.takeover == m.Takeover && st.settledBy != settledByNothing && !st.hasUnstored
}

// noteQueued takes a peerQueued: changes have waited at another replica, and the client cannot read
// them from the store. It reports false if this process does not carry the stream any more.
// st.mu is held.
func (st *sessionStream) noteQueued(m peerMessage) bool {
	if st.isReleased || st.ended {
		return false
	}
	for _, frame := range m.Frames {
		_ = st.writeLocked(frame) // a change is queued without a connection
	}
	if m.KnowsAll && st.awaits(m) && st.settledBy == settledByAny {
		st.isInDoubt = false
		st.stopWaiting()
	}
	return true
}

// eventsUntil returns the stored events of a stream after the one with id after, or nil if the
// event last is not one of them. Then the sender of last is not the replica that has carried the
// stream most recently, or the store cannot be read.
func (s *Server) eventsUntil(ctx context.Context, after, last string) (all []missedEvent) {
	events, err := s.opts.Sessions.Events.After(ctx, after)
	if err != nil {
		return nil
	}
	hasLast := false
	for id, data := range events {
		all = append(all, missedEvent{id, data})
		hasLast = hasLast || id == last
	}
	if !hasLast {
		return nil
	}
	return all
}

// sendFramesOfOthers sends the changes in stored events that this process has not sent. A frame
// that it has sent meanwhile has told the client of the same change. st.mu is held.
func (st *sessionStream) sendFramesOfOthers(stored []missedEvent) {
	known := slices.Clone(st.ownFrames)
	for _, e := range stored {
		isKnown := slices.ContainsFunc(known, func(frame []byte) bool { return bytes.Equal(frame, e.data) })
		if !isKnown && rawjson.Lookup(e.data, "id") == nil {
			known = append(known, e.data)
			_ = st.writeLocked(e.data) // a change is queued without a connection
		}
	}
}

// noteOwnFrame notes a frame that is sent or stored, if another replica may have stored the same
// change, or changes before it. st.mu is held.
func (st *sessionStream) noteOwnFrame(frame []byte) {
	if st.waiting != nil {
		st.ownFrames, st.isInDoubt = append(st.ownFrames, frame), true
	}
}

// noteMissed takes a peerMissed: the client is told of everything. It reports false if the client
// is not connected here. st.mu is held.
func (st *sessionStream) noteMissed() bool {
	if st.conn == nil {
		return false
	}
	st.isInDoubt = true
	st.settledBy = settledByNothing
	st.stopWaiting()
	st.waiting = time.AfterFunc(0, st.reportMissed)
	return true
}

// noteDoubt notes that the client may miss changes, and that no other replica knows.
func (st *sessionStream) noteDoubt() {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	st.isInDoubt = true
}

// stopWaiting reports false if there was nothing to wait for. st.mu is held.
func (st *sessionStream) stopWaiting() bool {
	if st.waiting == nil {
		return false
	}
	st.waiting.Stop()
	st.waiting, st.ownFrames = nil, nil
	return true
}

// reportSubscribed reports changes of resources to which this process has subscribed later than the
// client.
func (st *sessionStream) reportSubscribed(uris []string) {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	if st.runner != nil && !st.ended {
		st.reportUpdates(uris)
	}
}

// reportUpdates reports changes of resources. st.mu is held.
func (st *sessionStream) reportUpdates(uris []string) {
	for _, uri := range uris {
		if params, err := mcp.Encode(mcp.ResourceUpdatedParams{URI: uri}); err == nil {
			_ = st.writeLocked(jsonrpc.AppendNotification(nil, mcp.NotificationResourceUpdated, params))
		}
	}
}

// reportMissed sends a change of each list and each resource that the client listens to.
func (st *sessionStream) reportMissed() {
	uris := st.session.edge.Subscriptions()
	st.lockOrCutOff()
	defer st.mu.Unlock()
	if st.waiting == nil || st.ended {
		return // it was stopped meanwhile
	}
	if st.stopWaiting(); st.conn == nil { // the client resumes at another replica, or again here
		st.isInDoubt = true
		return
	}
	st.hasUnstored, st.isInDoubt = false, false
	for _, frame := range listChanges(st.lists) {
		_ = st.writeLocked(frame) // a change is queued without a connection
	}
	st.reportUpdates(uris)
}

// listChanges returns a change of each list that an acknowledgement has honoured. acknowledged is
// empty if the handler has not acknowledged; then listChanges returns nil.
func listChanges(acknowledged json.RawMessage) (all [][]byte) {
	var p mcp.ListenParams
	_ = mcp.Decode(acknowledged, &p)
	for method, listens := range map[string]bool{
		mcp.NotificationToolsChanged:     p.Notifications.ToolsListChanged,
		mcp.NotificationPromptsChanged:   p.Notifications.PromptsListChanged,
		mcp.NotificationResourcesChanged: p.Notifications.ResourcesListChanged,
	} {
		if listens {
			all = append(all, jsonrpc.AppendNotification(nil, method, nil))
		}
	}
	return all
}
