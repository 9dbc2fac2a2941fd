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

// lane is one stream of a legacy session: the answer to a request, or the standing one. It outlives the connection that
// carries it: what it has sent is kept, and a client that was cut off comes back for the rest (basic/transports:
// resumability).
type lane struct {
	session  *session
	name     string // in the event store; no other session has it
	standing bool
	request  *http.Request // what brought it, and what serves it; nil for the standing one
	answer   answerer
	slow     timeout.Entry // until the answer becomes a stream

	current atomic.Pointer[eventstream.Writer] // is stream, for those who cannot wait for mu

	mu       sync.Mutex          // held while something is sent, which a client that does not read makes long: see lock
	idle     http.ResponseWriter // of a client that waits, while the answer may still be one document
	stream   *eventstream.Writer // the connection; nil while there is none
	first    *eventstream.Writer // that of the request which brought the lane
	released hold                // of the connection's request
	accept   accepts
	prefix   []byte        // what goes before the next event on the connection
	document []byte        // the answer, where it is one document
	spares   []spare       // further connections of the standing lane
	waiting  [][]byte      // what came for the standing lane while nobody was there
	shift    *shift        // listens to changes of lists for the standing lane; nil while nobody does
	relieved *shift        // the one before, while it is heard
	changing chan struct{} // closed when shifts have changed; nil while they do not
	left     time.Time
	numbered bool // something was sent that a client can name to come back
	over     bool
}

// answerer serves the request of a lane: one message, or a batch.
type answerer interface{ answer(l *lane) []byte }

// newLane returns the lane of the answer to a request.
func (ss *session) newLane(w http.ResponseWriter, accept accepts) *lane {
	return &lane{session: ss, idle: w, accept: accept, released: make(parked)}
}

// serve runs a request, which goes on when the client has gone, and sends what comes of it. It returns when the client has
// the answer, or will come back for it, or has gone.
func (l *lane) serve(r *http.Request, answer answerer) {
	w, released := l.idle, l.released.(parked)
	l.request, l.answer = r, answer
	if server := l.session.server; server.opens(l.accept) {
		server.slow.Start(&l.slow, l)
		defer server.slow.Stop(&l.slow)
	}
	l.session.server.workers.start(l)
	select {
	case <-released:
	case <-r.Context().Done():
	}
	if document := l.detach(); document != nil {
		l.session.server.respond(w, http.StatusOK, document)
	}
}

// lock is for those who must not wait for a client that does not read: what is being sent to it is cut off. It comes back
// for the rest.
func (l *lane) lock() {
	const patience = 100 * time.Millisecond
	if l.mu.TryLock() {
		return
	}
	cut := time.AfterFunc(patience, func() {
		if stream := l.current.Load(); stream != nil {
			stream.CutOff(errSlow)
		}
	})
	l.mu.Lock()
	cut.Stop()
}

// carry makes stream the lane's connection, nil none; l.mu is held.
func (l *lane) carry(stream *eventstream.Writer) {
	l.stream = stream
	l.current.Store(stream)
}

// run serves the request, for a worker.
func (l *lane) run() { l.finish(l.answer.answer(l)) }

// Expire implements [timeout.Expirer]: an answer becomes a stream, if the client waits for it.
func (l *lane) Expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	l.flush()
}

// flush sends the first bytes of a stream; l.mu is held.
func (l *lane) flush() {
	switch {
	case l.stream == nil:
	case l.prefix != nil:
		_ = l.stream.SendEncoded(l.prefix) // who has gone comes back for the rest
		l.prefix = nil
	default:
		_ = l.stream.Open()
	}
}

// begin makes the answer a stream, whose first bytes are still to be sent; l.mu is held.
func (l *lane) begin() {
	if l.idle == nil || l.stream != nil || l.over || !l.accept.stream {
		return
	}
	l.name = l.session.newName(answerStream)
	l.session.enter(l)
	l.first = l.session.server.newStream(l.idle)
	l.carry(l.first)
	l.prime()
}

// prime prepares an event for the client to come back to, before there is any, where its revision knows such events.
func (l *lane) prime() {
	if l.session.edge.Revision < mcp.Revision20251125 {
		return
	}
	if id := l.keep(nil); id != "" {
		l.prefix = eventstream.Encode(eventstream.Event{ID: id, HasID: true, Retry: l.session.server.opts.Retry})
	}
}

// keep stores an event and returns its id; without one the client cannot come back to it.
func (l *lane) keep(frame []byte) string {
	id, err := l.session.server.opts.Events.Append(context.Background(), l.name, frame)
	if err != nil {
		l.session.server.opts.Logger.Warn("an event could not be stored", "err", err)
		return ""
	}
	l.numbered = true
	return id
}

// Write implements [serving.Writer].
func (l *lane) Write(frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(frame)
}

// write is Write; l.mu is held.
func (l *lane) write(frame []byte) error {
	switch {
	case l.over:
		return mcp.ErrPeerGone
	case l.standing && l.stream == nil:
		return l.wait(frame)
	case !l.standing && !l.accept.stream:
		return l.elsewhere(frame)
	}
	l.begin()
	l.send(frame)
	return nil
}

// send stores a frame and sends it, if the client is there; l.mu is held.
func (l *lane) send(frame []byte) {
	if l.name == "" {
		return // the client has gone before it could have come back
	}
	frames.Show(l.session.server.opts.Tap, transport.Sent, frame, nil)
	id := l.keep(frame)
	if l.stream == nil {
		return // it comes back for it
	}
	event := eventstream.Event{ID: id, HasID: id != "", Data: frame}.Append(l.prefix)
	l.prefix = nil
	switch {
	case !l.standing:
		_ = l.stream.SendEncoded(event) // the handler waits for its own client
	case !l.stream.TrySendEncoded(event): // nobody waits for who does not read: it is cut off, and comes back for the rest
		slow := l.stream
		slow.CutOff(errSlow)
		l.lose(slow)
	}
}

var errSlow = errors.New("the client does not read its stream")

const maxWaiting = 64

// wait keeps what came for the standing lane while nobody was there, each message once; l.mu is held. Questions cannot
// wait: the call that asks would.
func (l *lane) wait(frame []byte) error {
	if rawjson.Lookup(frame, "id") != nil {
		return mcp.ErrPeerGone
	}
	for _, there := range l.waiting {
		if string(there) == string(frame) {
			return nil
		}
	}
	if len(l.waiting) < maxWaiting {
		l.waiting = append(l.waiting, frame)
	}
	return nil
}

// catchUp sends what has waited; l.mu is held.
func (l *lane) catchUp() {
	frames := l.waiting
	l.waiting = nil
	for _, frame := range frames {
		l.send(frame)
	}
}

// elsewhere takes what comes before an answer that cannot be a stream: a question goes to the standing lane.
func (l *lane) elsewhere(frame []byte) error {
	if rawjson.Lookup(frame, "id") == nil {
		return nil
	}
	return l.session.Write(frame)
}

// finish ends the lane with the last frame, which is the answer as one document where the client still waits for that.
func (l *lane) finish(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stream == nil && l.idle != nil && l.accept.json:
		l.document = frame
	case l.stream == nil && l.idle != nil && frame != nil: // nothing was sent that the client could come back to
		l.first = l.session.server.newStream(l.idle)
		l.carry(l.first)
		l.last(eventstream.Event{Data: frame})
	case l.name != "" && frame != nil:
		id := l.keep(frame)
		l.last(eventstream.Event{ID: id, HasID: id != "", Data: frame})
	}
	l.end()
}

// last sends what ends the stream, if the client is there; l.mu is held.
func (l *lane) last(e eventstream.Event) {
	frames.Show(l.session.server.opts.Tap, transport.Sent, e.Data, nil)
	switch {
	case l.stream == nil: // it comes back for it
	case l.prefix != nil:
		_ = l.stream.SendEncoded(e.Append(l.prefix))
	default:
		_ = l.stream.End(e)
	}
}

// end lets no more be written; l.mu is held.
func (l *lane) end() {
	l.over = true
	l.session.forget(l)
	l.letGo()
}

func (l *lane) release() {
	if l.released != nil {
		l.released.letGo()
		l.released = nil
	}
}

// close ends the lane because its session has ended.
func (l *lane) close() {
	l.lock()
	defer l.mu.Unlock()
	l.stopListening()
	l.end()
}

// detach takes the lane off its first connection, which nobody uses any more when it returns; the client may be back already
// on another. The answer is returned where it is to be one document.
func (l *lane) detach() (document []byte) {
	l.lock()
	first, document := l.first, l.document
	l.idle, l.first, l.document = nil, nil, nil
	if l.stream == first {
		l.carry(nil)
		l.prefix = nil
	}
	l.mu.Unlock()
	if first != nil {
		_ = first.Close() // who has gone comes back for the rest
	}
	return document
}

// Disconnect ends the connection that carries the lane while its request goes on; the client comes back for the rest. It
// reports false where the client would not know to.
func (l *lane) Disconnect() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.edge.Revision < mcp.Revision20251125 {
		return false
	}
	if l.begin(); l.stream == nil || l.over {
		return false
	}
	l.flush()
	l.release()
	return true
}
