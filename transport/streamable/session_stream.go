package streamable

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// A sessionStream carries everything that a legacy client should hear outside its requests: list
// changes, resource updates and questions. It subscribes to the handler at the client's first GET
// and stays subscribed while the client is disconnected; see [subscriptionRunner].
//
// A client may have several connections at a time (basic/transports: multiple connections). Each
// message goes over one of them, the newest. The others are standby connections and take over when
// it ends. Each connection has its own events, so it has a name of its own in the event store.
type sessionStream struct {
	legacyStream

	// All of these are guarded by mu.
	standby        []standbyConn       // further connections, oldest first
	queued         []queuedFrame       // frames that wait for a connection or the end of a handover
	runner         *subscriptionRunner // subscribes to the handler; nil if nothing does
	replacedRunner *subscriptionRunner // the runner before it, during a handover
	handover       chan struct{}       // closed when the handover in progress ends; nil if there is none
	disconnectedAt time.Time           // when the last connection was lost
	connContext    context.Context     // of the GET of the newest connection; nil before the first
	carriedStream                      // which of the replicas has carried the stream
}

const (
	maxStandby = 7  // further connections that one session may hold open
	maxQueued  = 64 // frames
)

// queuedFrame is a frame that waits. If the replicas share the events, the frame may be stored
// already, for a client that resumes the stream.
type queuedFrame struct {
	frame   []byte
	id      string // of the stored event; empty if it is not stored
	isNewer bool   // an equal frame came after that event
}

// standbyConn is a connection that carries nothing while a newer one exists.
type standbyConn struct {
	conn *eventstream.Writer
	name string // in the event store
	hold requestHold
}

// Write implements [serving.Writer] for frames that belong to no request.
func (st *sessionStream) Write(frame []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.writeLocked(frame)
}

func (st *sessionStream) writeLocked(frame []byte) error {
	switch {
	case st.ended:
		return mcp.ErrPeerGone
	case st.conn == nil:
		return st.queueFrame(frame)
	}
	st.sendFrame(frame)
	return nil
}

// sendFrame stores a frame and sends it. A client that does not read is cut off rather than waited
// for, since the sender has other clients too; it can reconnect for the rest. st.mu is held.
func (st *sessionStream) sendFrame(frame []byte) {
	frames.ShowIn(st.connContext, st.session.server.opts.Tap, transport.Sent, frame, nil)
	event := st.encodeEvent(frame)
	st.noteOwnFrame(frame)
	if event == nil || st.conn.TrySendEncoded(event) {
		return
	}
	slow := st.conn
	slow.CutOff(errSlowClient)
	st.removeConnLocked(slow)
}

// queueFrame keeps a frame until it can be sent; equal frames are kept once. A question cannot be
// queued, because the call that asks would wait without bound. st.mu is held.
func (st *sessionStream) queueFrame(frame []byte) error {
	if rawjson.Lookup(frame, "id") != nil {
		return mcp.ErrPeerGone
	}
	if st.isReleased {
		return nil
	}
	for i := range st.queued {
		if q := &st.queued[i]; string(q.frame) == string(frame) {
			q.isNewer = q.id != ""
			return nil
		}
	}
	if len(st.queued) >= maxQueued {
		st.hasUnstored = true
	} else {
		st.queued = append(st.queued, queuedFrame{frame: frame})
		if st.conn == nil && st.replacedRunner == nil {
			st.storeQueued()
		}
	}
	return nil
}

// storeQueued stores the queued frames if the replicas share the events, for a client that resumes
// the stream at another one. st.mu is held.
func (st *sessionStream) storeQueued() {
	if !st.hasEventIDs() || st.session.server.replicas == nil {
		return
	}
	for i := range st.queued {
		if q := &st.queued[i]; q.id == "" {
			q.id = st.storeEvent(q.frame)
			st.noteOwnFrame(q.frame)
		}
	}
}

// storeQueuedAgain stores the frames for which an equal one came after the stored event: the client
// may have read that event. st.mu is held.
func (st *sessionStream) storeQueuedAgain() {
	for i := range st.queued {
		if q := &st.queued[i]; q.isNewer {
			q.id, q.isNewer = "", false
		}
	}
	if st.conn == nil {
		st.storeQueued()
	}
}

// sendQueued sends the queued frames. st.mu is held.
func (st *sessionStream) sendQueued() {
	queued := st.queued
	st.queued = nil
	for _, q := range queued {
		st.sendFrame(q.frame)
	}
}

// dropReplayed forgets the queued frames of events that the client gets from the store. st.mu is
// held.
func (st *sessionStream) dropReplayed(missed []missedEvent) {
	st.queued = slices.DeleteFunc(st.queued, func(q queuedFrame) bool {
		return slices.ContainsFunc(missed, func(e missedEvent) bool { return e.id == q.id })
	})
}

// endWithSession ends the stream because the session has ended.
func (st *sessionStream) endWithSession() {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	st.stopRunners()
	st.stopWaiting()
	st.ended = true
	st.releaseHold()
	for _, s := range st.standby {
		s.hold.release()
	}
	st.standby = nil
}

// serveGET carries the stream over the connection of a GET and returns when the connection is not
// needed any more. If the client resumes, name is the name of its connection before and last the id
// of the last event that it got on it.
func (st *sessionStream) serveGET(w http.ResponseWriter, r *http.Request, name, last string) {
	st.session.retryRefused()
	c := newGetConn(&st.legacyStream, st, w, r)
	if server := st.session.server; server.replicas != nil {
		c.onJoin = func() { server.tellPeers(st.newTakeover(r, last != "")) }
	}
	// The response begins when the subscription is active. From then on the client may cause
	// changes.
	runner := st.startRunner(func(r *subscriptionRunner) { c.openConn(r, name, last) })
	if runner != nil {
		runner.runSubscription()
		<-runner.ctx.Done()
	} else {
		c.openAndWait(name, last)
	}
	c.closeConn()
}

// joinConn implements [getTarget]. If the event store has forgotten the event last, the connection
// starts as a new one.
func (st *sessionStream) joinConn(c *getConn, name, last string, h requestHold) (joined bool, missed []missedEvent) {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	missed, err := st.missedEvents(c.request, last)
	if len(missed) > 0 || st.ended || isRetryable(err) {
		st.dropReplayed(missed)
		return false, missed
	}
	resumes := last != ""
	if err != nil {
		name, last = "", ""
	}
	if last != "" {
		st.lastEvent = last
	}
	if st.session.server.replicas != nil {
		st.awaitCarrier(resumes, last)
	}
	st.connContext = c.request.Context()
	st.addConn(c.conn, name, h)
	if st.runner == nil && st.handover == nil { // another replica has taken the stream meanwhile
		go st.runInBackground()
	}
	if last == "" {
		st.prepareOpening()
		st.sendOpening()
	}
	if st.replacedRunner == nil {
		st.sendQueued()
	}
	return true, nil
}

// addConn makes conn the connection of the stream and the one before a standby connection. name is
// the name of the connection that the client resumes, or empty for a new one. st.mu is held.
func (st *sessionStream) addConn(conn *eventstream.Writer, name string, h requestHold) {
	if st.conn != nil {
		st.standby = append(st.standby, standbyConn{st.conn, st.name, st.hold})
		st.hold = nil
	}
	if len(st.standby) > maxStandby {
		st.standby[0].hold.release()
		st.standby = st.standby[1:]
	}
	st.setConn(conn)
	st.hold = h
	switch {
	case name != "":
		st.name = name
	case st.hasEventIDs():
		st.name = st.session.newStreamName(extraStreamMark)
	}
}

// removeConn implements [getTarget].
func (st *sessionStream) removeConn(conn *eventstream.Writer) {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	st.removeConnLocked(conn)
}

// removeConnLocked removes a connection. If it is the current one, the newest standby connection
// takes over. st.mu is held.
func (st *sessionStream) removeConnLocked(conn *eventstream.Writer) {
	for i, s := range st.standby {
		if s.conn == conn {
			st.standby = append(st.standby[:i], st.standby[i+1:]...)
			s.hold.release()
			return
		}
	}
	if st.conn != conn {
		return
	}
	st.setConn(nil)
	st.disconnectedAt = time.Now()
	st.releaseHold()
	if n := len(st.standby); n > 0 {
		s := st.standby[n-1]
		st.standby = st.standby[:n-1]
		st.setConn(s.conn)
		st.name, st.hold = s.name, s.hold
	}
}
