package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// legacyStream is one stream of a legacy session: the answer to a request, or the standing one. It outlives the connection that
// carries it: what it has sent is kept, and a client that was cut off comes back for the rest (basic/transports:
// resumability).
type legacyStream struct {
	session         *session
	name            string // in the event store; no other session has it
	isSessionStream bool
	request         *http.Request // what brought it, and what serves it; nil for the standing one
	incoming        legacyRequest
	slowTimer       timeout.Entry // until the answer becomes a stream

	liveConn atomic.Pointer[eventstream.Writer] // is stream, for those who cannot wait for mu

	mu             sync.Mutex          // held while something is sent, which a client that does not read makes long: see lock
	pendingWriter  http.ResponseWriter // of a client that waits, while the answer may still be one document
	conn           *eventstream.Writer // the connection; nil while there is none
	firstConn      *eventstream.Writer // that of the request which brought the lane
	hold           requestHold         // of the connection's request
	accept         acceptedTypes
	opening        []byte              // what goes before the next event on the connection
	document       []byte              // the answer, where it is one document
	standby        []standbyConn       // further connections of the standing lane
	queued         [][]byte            // what came for the standing lane while nobody was there
	runner         *subscriptionRunner // listens to changes of lists for the standing lane; nil while nobody does
	replacedRunner *subscriptionRunner // the one before, while it is heard
	handover       chan struct{}       // closed when shifts have changed; nil while they do not
	disconnectedAt time.Time
	hasEventIDs    bool // something was sent that a client can name to come back
	ended          bool
}

// legacyRequest serves the request of a lane: one message, or a batch.
type legacyRequest interface{ serveOn(l *legacyStream) []byte }

// newAnswerStream returns the lane of the answer to a request.
func (ss *session) newAnswerStream(w http.ResponseWriter, accept acceptedTypes) *legacyStream {
	return &legacyStream{session: ss, pendingWriter: w, accept: accept, hold: make(blockedRequest)}
}

// serveAnswer runs a request, which goes on when the client has gone, and sends what comes of it. It returns when the client has
// the answer, or will come back for it, or has gone.
func (l *legacyStream) serveAnswer(r *http.Request, answer legacyRequest) {
	w, released := l.pendingWriter, l.hold.(blockedRequest)
	l.request, l.incoming = r, answer
	if server := l.session.server; server.opensStream(l.accept) {
		server.slowAnswers.Start(&l.slowTimer, l)
		defer server.slowAnswers.Stop(&l.slowTimer)
	}
	l.session.server.workers.startAnswer(l)
	select {
	case <-released:
	case <-r.Context().Done():
	}
	if document := l.detachRequest(); document != nil {
		l.session.server.writeDocument(w, http.StatusOK, document)
	}
}

// lockOrCutOff is for those who must not wait for a client that does not read: what is being sent to it is cut off. It comes back
// for the rest.
func (l *legacyStream) lockOrCutOff() {
	const patience = 100 * time.Millisecond
	if l.mu.TryLock() {
		return
	}
	cut := time.AfterFunc(patience, func() {
		if stream := l.liveConn.Load(); stream != nil {
			stream.CutOff(errSlowClient)
		}
	})
	l.mu.Lock()
	cut.Stop()
}

// setConn makes stream the lane's connection, nil none; l.mu is held.
func (l *legacyStream) setConn(stream *eventstream.Writer) {
	l.conn = stream
	l.liveConn.Store(stream)
}

// runRequest serves the request, for a worker.
func (l *legacyStream) runRequest() { l.finishAnswer(l.incoming.serveOn(l)) }

// Expire implements [timeout.Expirer]: an answer becomes a stream, if the client waits for it.
func (l *legacyStream) Expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginStream()
	l.sendOpening()
}

// sendOpening sends the first bytes of a stream; l.mu is held.
func (l *legacyStream) sendOpening() {
	switch {
	case l.conn == nil:
	case l.opening != nil:
		_ = l.conn.SendEncoded(l.opening) // who has gone comes back for the rest
		l.opening = nil
	default:
		_ = l.conn.Open()
	}
}

// beginStream makes the answer a stream, whose first bytes are still to be sent; l.mu is held.
func (l *legacyStream) beginStream() {
	if l.pendingWriter == nil || l.conn != nil || l.ended || !l.accept.stream {
		return
	}
	l.name = l.session.newStreamName(answerStreamMark)
	l.session.addAnswerStream(l)
	l.firstConn = l.session.server.newEventWriter(l.pendingWriter)
	l.setConn(l.firstConn)
	l.prepareOpening()
}

// prepareOpening prepares an event for the client to come back to, before there is any, where its revision knows such events.
func (l *legacyStream) prepareOpening() {
	if l.session.edge.Revision < mcp.Revision20251125 {
		return
	}
	if id := l.storeEvent(nil); id != "" {
		l.opening = eventstream.Encode(eventstream.Event{ID: id, HasID: true, Retry: l.session.server.opts.Retry})
	}
}

// storeEvent stores an event and returns its id; without one the client cannot come back to it.
func (l *legacyStream) storeEvent(frame []byte) string {
	id, err := l.session.server.opts.Events.Append(context.Background(), l.name, frame)
	if err != nil {
		l.session.server.opts.Logger.Warn("an event could not be stored", "err", err)
		return ""
	}
	l.hasEventIDs = true
	return id
}

// Write implements [serving.Writer].
func (l *legacyStream) Write(frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeLocked(frame)
}

// writeLocked is Write; l.mu is held.
func (l *legacyStream) writeLocked(frame []byte) error {
	switch {
	case l.ended:
		return mcp.ErrPeerGone
	case l.isSessionStream && l.conn == nil:
		return l.queueFrame(frame)
	case !l.isSessionStream && !l.accept.stream:
		return l.writeWithoutStream(frame)
	}
	l.beginStream()
	l.sendFrame(frame)
	return nil
}

// sendFrame stores a frame and sends it, if the client is there; l.mu is held.
func (l *legacyStream) sendFrame(frame []byte) {
	if l.name == "" {
		return // the client has gone before it could have come back
	}
	frames.Show(l.session.server.opts.Tap, transport.Sent, frame, nil)
	id := l.storeEvent(frame)
	if l.conn == nil {
		return // it comes back for it
	}
	event := eventstream.Event{ID: id, HasID: id != "", Data: frame}.Append(l.opening)
	l.opening = nil
	switch {
	case !l.isSessionStream:
		_ = l.conn.SendEncoded(event) // the handler waits for its own client
	case !l.conn.TrySendEncoded(event): // nobody waits for who does not read: it is cut off, and comes back for the rest
		slow := l.conn
		slow.CutOff(errSlowClient)
		l.removeConnLocked(slow)
	}
}

var errSlowClient = errors.New("the client does not read its stream")

const maxQueued = 64

// queueFrame keeps what came for the standing lane while nobody was there, each message once; l.mu is held. Questions cannot
// wait: the call that asks would.
func (l *legacyStream) queueFrame(frame []byte) error {
	if rawjson.Lookup(frame, "id") != nil {
		return mcp.ErrPeerGone
	}
	for _, there := range l.queued {
		if string(there) == string(frame) {
			return nil
		}
	}
	if len(l.queued) < maxQueued {
		l.queued = append(l.queued, frame)
	}
	return nil
}

// sendQueued sends what has waited; l.mu is held.
func (l *legacyStream) sendQueued() {
	frames := l.queued
	l.queued = nil
	for _, frame := range frames {
		l.sendFrame(frame)
	}
}

// writeWithoutStream takes what comes before an answer that cannot be a stream: a question goes to the standing lane.
func (l *legacyStream) writeWithoutStream(frame []byte) error {
	if rawjson.Lookup(frame, "id") == nil {
		return nil
	}
	return l.session.Write(frame)
}

// finishAnswer ends the lane with the last frame, which is the answer as one document where the client still waits for that.
func (l *legacyStream) finishAnswer(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.conn == nil && l.pendingWriter != nil && l.accept.json:
		l.document = frame
	case l.conn == nil && l.pendingWriter != nil && frame != nil: // nothing was sent that the client could come back to
		l.firstConn = l.session.server.newEventWriter(l.pendingWriter)
		l.setConn(l.firstConn)
		l.sendLast(eventstream.Event{Data: frame})
	case l.name != "" && frame != nil:
		id := l.storeEvent(frame)
		l.sendLast(eventstream.Event{ID: id, HasID: id != "", Data: frame})
	}
	l.endLocked()
}

// sendLast sends what ends the stream, if the client is there; l.mu is held.
func (l *legacyStream) sendLast(e eventstream.Event) {
	frames.Show(l.session.server.opts.Tap, transport.Sent, e.Data, nil)
	switch {
	case l.conn == nil: // it comes back for it
	case l.opening != nil:
		_ = l.conn.SendEncoded(e.Append(l.opening))
	default:
		_ = l.conn.End(e)
	}
}

// endLocked lets no more be written; l.mu is held.
func (l *legacyStream) endLocked() {
	l.ended = true
	l.session.removeAnswerStream(l)
	l.releaseConns()
}

func (l *legacyStream) releaseHold() {
	if l.hold != nil {
		l.hold.release()
		l.hold = nil
	}
}

// closeStream ends the lane because its session has ended.
func (l *legacyStream) closeStream() {
	l.lockOrCutOff()
	defer l.mu.Unlock()
	l.stopRunners()
	l.endLocked()
}

// detachRequest takes the lane off its first connection, which nobody uses any more when it returns; the client may be back already
// on another. The answer is returned where it is to be one document.
func (l *legacyStream) detachRequest() (document []byte) {
	l.lockOrCutOff()
	first, document := l.firstConn, l.document
	l.pendingWriter, l.firstConn, l.document = nil, nil, nil
	if l.conn == first {
		l.setConn(nil)
		l.opening = nil
	}
	l.mu.Unlock()
	if first != nil {
		_ = first.Close() // who has gone comes back for the rest
	}
	return document
}

// Disconnect ends the connection that carries the lane while its request goes on; the client comes back for the rest. It
// reports false where the client would not know to.
func (l *legacyStream) Disconnect() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.edge.Revision < mcp.Revision20251125 {
		return false
	}
	if l.beginStream(); l.conn == nil || l.ended {
		return false
	}
	l.sendOpening()
	l.releaseHold()
	return true
}
