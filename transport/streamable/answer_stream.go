package streamable

import (
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// An answerStream carries the answer to a legacy request. It becomes an event stream with the first
// notification or question, or when the call is slow; until then the answer may still be one JSON
// document. The call runs on a worker and continues if the client disconnects.
type answerStream struct {
	legacyStream
	request   *http.Request // the POST
	incoming  legacyRequest // the message or batch in the POST
	accept    acceptedTypes
	slowTimer timeout.Entry // calls Expire, unless the call ends first

	// All of these are guarded by mu.
	pendingWriter http.ResponseWriter // the response to the POST while its client waits; nil later
	postConn      *eventstream.Writer // the event stream on pendingWriter; nil if there is none
	document      []byte              // the answer if it is one JSON document
}

// legacyRequest is the content of a POST of a session: one message or a batch.
type legacyRequest interface {
	// serveOn serves the request, with its notifications and questions sent to the stream, and
	// returns the response.
	serveOn(a *answerStream) []byte
	// refuseAnswer returns an error that takes the place of the response.
	refuseAnswer(limit *quota.LimitError) []byte
}

// newAnswerStream returns the stream for the answer to a POST. w is the response.
func (ss *session) newAnswerStream(w http.ResponseWriter, accept acceptedTypes) *answerStream {
	return &answerStream{
		legacyStream:  legacyStream{session: ss, hold: make(blockedRequest)},
		pendingWriter: w, accept: accept,
	}
}

// serveAnswer serves a request and sends the answer. It returns when the client has the answer, has
// disconnected, or was told to reconnect for the rest. In the latter cases the call continues.
func (a *answerStream) serveAnswer(r *http.Request, incoming legacyRequest) {
	w, released := a.pendingWriter, a.hold.(blockedRequest)
	a.request, a.incoming = r, incoming
	switch server := a.session.server; {
	case server.opts.StreamAtOnce:
		a.Expire()
	case server.opensStream(a.accept):
		server.slowAnswers.Start(&a.slowTimer, a)
		defer server.slowAnswers.Stop(&a.slowTimer)
	}
	a.session.server.workers.startAnswer(a)
	select {
	case <-released:
	case <-r.Context().Done():
	}
	if document := a.detachRequest(); document != nil {
		err := a.session.server.writeAnswer(w, r, http.StatusOK, document, a.session.client)
		if limit, ok := errors.AsType[*quota.LimitError](err); ok {
			a.session.server.writeDocument(w, r, http.StatusOK, incoming.refuseAnswer(limit))
		}
	}
}

// runRequest serves the request on the goroutine of a worker.
func (a *answerStream) runRequest() { a.finishAnswer(a.incoming.serveOn(a)) }

// Expire implements [timeout.Expirer]. It makes a slow answer an event stream.
func (a *answerStream) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beginStream()
	a.sendOpening()
}

// beginStream makes the answer an event stream if it still may be a document. It sends nothing yet.
// a.mu is held.
func (a *answerStream) beginStream() {
	if a.pendingWriter == nil || a.conn != nil || a.ended || !a.accept.stream {
		return
	}
	a.name = a.session.newStreamName(answerStreamMark) + a.requestMark()
	a.session.addAnswerStream(a)
	a.postConn = a.session.server.newEventWriter(a.pendingWriter, a.session.client)
	a.setConn(a.postConn)
	a.prepareOpening()
}

// Write implements [serving.Writer] for the notifications and questions of the request.
func (a *answerStream) Write(frame []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended:
		return mcp.ErrPeerGone
	case !a.accept.stream:
		return a.writeWithoutStream(frame)
	}
	a.beginStream()
	if a.name == "" {
		return nil // the client disconnected before it had an event to resume from
	}
	frames.ShowIn(a.request.Context(), a.session.server.opts.Tap, transport.Sent, frame, nil)
	if event := a.encodeEvent(frame); event != nil {
		_ = a.sendEncoded(event) // waits for the client, which is the handler's own; after an error it reconnects
	}
	return nil
}

// writeWithoutStream handles a frame for a client that accepts no event stream as the answer.
// Questions go over the session stream, and notifications are dropped.
func (a *answerStream) writeWithoutStream(frame []byte) error {
	if rawjson.Lookup(frame, "id") == nil {
		return nil
	}
	return a.session.Write(frame)
}

// finishAnswer ends the stream with the response. It becomes one JSON document if the client still
// waits for that.
func (a *answerStream) finishAnswer(frame []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.conn == nil && a.pendingWriter != nil && a.accept.json:
		a.document = frame
	case a.conn == nil && a.pendingWriter != nil && frame != nil: // without an id: the client has no event to resume from
		a.postConn = a.session.server.newEventWriter(a.pendingWriter, a.session.client)
		a.setConn(a.postConn)
		a.sendLast(eventstream.Event{Data: frame})
	case a.name != "" && frame != nil:
		id := a.storeEvent(frame)
		a.sendLast(eventstream.Event{ID: id, HasID: id != "", Data: frame})
	}
	a.endLocked()
}

// sendLast sends the event that ends the stream, if the client is connected. If the event would
// exceed a limit, an error takes its place. a.mu is held.
func (a *answerStream) sendLast(e eventstream.Event) {
	frames.ShowIn(a.request.Context(), a.session.server.opts.Tap, transport.Sent, e.Data, nil)
	if a.conn == nil { // the client may reconnect for it
		return
	}
	if a.opening != nil && len(e.Data) <= quota.Uncounted {
		_ = a.sendEncoded(e.Append(a.opening))
		return
	}
	if a.opening != nil {
		_ = a.sendEncoded(a.opening) // after an error End fails too
	}
	if limit, ok := errors.AsType[*quota.LimitError](a.sendEnd(e)); ok {
		e.Data = a.incoming.refuseAnswer(limit)
		_ = a.sendEnd(e)
	}
}

// endLocked lets nothing more be written and the request of the connection return. a.mu is held.
func (a *answerStream) endLocked() {
	a.ended = true
	a.session.removeAnswerStream(a)
	a.releaseHold()
}

// endWithSession ends the stream because the session has ended.
func (a *answerStream) endWithSession() {
	a.lockOrCutOff()
	defer a.mu.Unlock()
	a.endLocked()
}

// detachRequest removes the POST from the stream. When it returns, nothing uses the POST's response
// any more; the client may already have another connection. If the answer is one document it is
// returned.
func (a *answerStream) detachRequest() (document []byte) {
	a.lockOrCutOff()
	conn, document := a.postConn, a.document
	a.pendingWriter, a.postConn, a.document = nil, nil, nil
	if a.conn == conn {
		a.setConn(nil)
		a.opening = nil
	}
	a.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // after an error the client reconnects
	}
	return document
}

// Disconnect ends the connection while the request continues; the client reconnects for the rest.
// It reports false if the client's revision does not know that.
func (a *answerStream) Disconnect() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.session.edge.Revision < mcp.Revision20251125 {
		return false
	}
	if a.beginStream(); a.conn == nil || a.ended {
		return false
	}
	a.sendOpening()
	a.releaseHold()
	return true
}

// serveGET continues the stream over the connection of a GET, after the event with id last. It
// returns when the connection is not needed any more.
func (a *answerStream) serveGET(w http.ResponseWriter, r *http.Request, last string) {
	c := newGetConn(&a.legacyStream, a, w, r)
	c.openAndWait(a.name, last)
	c.closeConn()
}

// leaveConn removes the connection that the stream still has. The client's GET shows that it is
// dead.
func (a *answerStream) leaveConn() {
	a.lockOrCutOff()
	defer a.mu.Unlock()
	a.setConn(nil)
	a.releaseHold()
}

// joinConn implements [getTarget].
func (a *answerStream) joinConn(c *getConn, _, last string, h requestHold) (joined bool, missed []missedEvent) {
	a.lockOrCutOff()
	defer a.mu.Unlock()
	missed, err := a.missedEvents(c.request, last)
	if len(missed) > 0 || a.ended || isRetryable(err) {
		return false, missed
	}
	a.releaseHold()
	a.setConn(c.conn)
	a.hold = h
	return true, nil
}

// removeConn implements [getTarget].
func (a *answerStream) removeConn(conn *eventstream.Writer) {
	a.lockOrCutOff()
	defer a.mu.Unlock()
	if a.conn == conn {
		a.setConn(nil)
		a.releaseHold()
	}
}
