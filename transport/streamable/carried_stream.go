package streamable

import (
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// carriedStream is the part of a [sessionStream] for replicas. A client that resumes the stream at
// a replica expects that it has missed nothing. The replica that carried the stream before stores
// each change for it, and subscribes until this one does. But that replica may have ended, and the
// changes since are in no store. So this one asks for it; without an answer it tells the client
// that everything may have changed that the client listens to. The fields are guarded by the
// stream's mu.
type carriedStream struct {
	lists   json.RawMessage // the parameters of the handler's acknowledgement
	isFresh bool            // the subscription has begun in this process, and nothing is known of the time before
	waiting *time.Timer     // reports what may have been missed; nil if nothing was
}

// defaultCarrierWait is how long the replica that carried a stream may take to say so.
const defaultCarrierWait = time.Second

// awaitCarrier is called before the other replicas are told that this one carries the stream. If
// the client resumes the stream and no other replica has carried it, the client is told what it may
// have missed.
func (st *sessionStream) awaitCarrier(resumes bool) {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	mayMiss := resumes && (st.isFresh || st.hasUnstored)
	st.isFresh = false
	if mayMiss && st.waiting == nil && !st.ended {
		st.waiting = time.AfterFunc(st.session.server.carrierWait, st.reportMissed)
	}
}

// carriesStream reports whether the session's stream has a subscription in this process, which has
// missed nothing and has stored everything.
func (ss *session) carriesStream() bool {
	st := ss.currentSessionStream()
	if st == nil {
		return false
	}
	st.lockOrCutOff()
	defer st.mu.Unlock()
	return st.runner != nil && !st.isFresh && st.waiting == nil && !st.hasUnstored
}

// noteCarried notes that another replica has carried the stream until now. It reports whether that
// was of interest.
func (ss *session) noteCarried() bool {
	st := ss.currentSessionStream()
	if st == nil {
		return false
	}
	st.lockOrCutOff()
	defer st.mu.Unlock()
	if st.hasUnstored { // an event of this process is missing
		return false
	}
	return st.stopWaiting()
}

// stopWaiting reports false if there was nothing to wait for. st.mu is held.
func (st *sessionStream) stopWaiting() bool {
	if st.waiting == nil {
		return false
	}
	st.waiting.Stop()
	st.waiting = nil
	return true
}

// reportSubscribed reports changes of resources to which this process has subscribed later than the
// client.
func (st *sessionStream) reportSubscribed(uris []string) {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	if st.runner != nil && st.waiting == nil && !st.ended {
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
	if st.waiting = nil; st.conn == nil { // the client resumes at another replica, or again here
		st.isFresh = true
		return
	}
	st.hasUnstored = false
	var p mcp.ListenParams
	_ = mcp.Decode(st.lists, &p) // without an acknowledgement there are no lists
	for method, listens := range map[string]bool{
		mcp.NotificationToolsChanged:     p.Notifications.ToolsListChanged,
		mcp.NotificationPromptsChanged:   p.Notifications.PromptsListChanged,
		mcp.NotificationResourcesChanged: p.Notifications.ResourcesListChanged,
	} {
		if listens {
			_ = st.writeLocked(jsonrpc.AppendNotification(nil, method, nil)) // a change is queued without a connection
		}
	}
	st.reportUpdates(uris)
}
