package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/mcp"
)

// legacyStream is the common part of the streams of a legacy session: an [answerStream] carries the
// answer to one request, and the [sessionStream] everything else. A stream outlives the connection
// that carries it. Its events are stored, and a client whose connection was lost reads the rest
// with a GET (basic/transports: resumability).
type legacyStream struct {
	session *session
	name    string // names the stream in the event store; unique among all sessions

	// liveConn is conn, for readers that must not wait for mu.
	liveConn atomic.Pointer[eventstream.Writer]

	// mu is held while a frame is stored and sent. A send may take long if the client does not
	// read. Use lockOrCutOff where that must not happen.
	mu          sync.Mutex
	conn        *eventstream.Writer // the connection; nil if the client is not connected
	hold        requestHold         // keeps the HTTP request of conn from returning
	opening     []byte              // sent before the next event on conn
	lastEvent   string              // the id of the newest stored event, or the Last-Event-ID of the client
	hasUnstored bool                // an event could not be stored, so that a client which resumes may miss it
	ended       bool                // nothing is written any more

	// sends counts the starts and ends of sends that may wait for the client: it is odd during one.
	// It is changed while mu is held, and read without it.
	sends atomic.Uint32
}

// requestHold keeps the HTTP request of a connection from returning until release is called.
type requestHold interface {
	// release lets the request return. It is called once, while the stream's mu is held.
	release()
}

// blockedRequest is the hold of a request that only waits.
type blockedRequest chan struct{}

func (b blockedRequest) release() { close(b) }

// maxSend bounds a send to the client while another goroutine waits for mu.
const maxSend = 100 * time.Millisecond

// lockOrCutOff locks mu, but waits only for a moment for a client that does not read: then it cuts
// off the client's connection. The client can reconnect for the rest. It waits as long as needed
// for the event store, which is not the client's fault.
func (l *legacyStream) lockOrCutOff() {
	if l.mu.TryLock() {
		return
	}
	seen, locked := l.sends.Load(), make(chan struct{})
	watch := time.AfterFunc(maxSend, func() { l.cutOffSends(seen, locked) })
	l.mu.Lock()
	watch.Stop()
	close(locked)
}

// cutOffSends cuts off the connection if one send lasts for maxSend, until locked is closed. seen
// is the value of l.sends maxSend ago.
func (l *legacyStream) cutOffSends(seen uint32, locked <-chan struct{}) {
	for {
		sends := l.sends.Load()
		if conn := l.liveConn.Load(); conn != nil && sends == seen && sends%2 == 1 {
			conn.CutOff(errSlowClient)
		}
		seen = sends
		select {
		case <-locked:
			return
		case <-time.After(maxSend):
		}
	}
}

// sendEncoded sends an encoded event and may wait for the client. l.mu is held and l.conn not nil,
// here and for sendEnd.
func (l *legacyStream) sendEncoded(event []byte) error {
	l.sends.Add(1)
	defer l.sends.Add(1)
	return l.conn.SendEncoded(event)
}

// sendEnd ends the connection with an event and may wait for the client.
func (l *legacyStream) sendEnd(e eventstream.Event) error {
	l.sends.Add(1)
	defer l.sends.Add(1)
	return l.conn.End(e)
}

var errSlowClient = errors.New("the client does not read its stream")

// setConn makes conn the stream's connection; nil means none. l.mu is held.
func (l *legacyStream) setConn(conn *eventstream.Writer) {
	l.conn = conn
	l.liveConn.Store(conn)
}

// isConnected reports whether a client is connected. It does not wait for mu.
func (l *legacyStream) isConnected() bool { return l.liveConn.Load() != nil }

// releaseHold lets the request of the connection return. l.mu is held.
func (l *legacyStream) releaseHold() {
	if l.hold != nil {
		l.hold.release()
		l.hold = nil
	}
}

// sendOpening sends the first bytes of a connection. l.mu is held.
func (l *legacyStream) sendOpening() {
	switch {
	case l.conn == nil:
	case l.opening != nil:
		_ = l.sendEncoded(l.opening) // after an error the client reconnects
		l.opening = nil
	default:
		l.sends.Add(1)
		_ = l.conn.Open()
		l.sends.Add(1)
	}
}

// hasEventIDs reports whether the client has an event id to resume from. l.mu is held.
func (l *legacyStream) hasEventIDs() bool { return l.lastEvent != "" }

// prepareOpening makes an event without data the opening of the connection. With its id the client
// can resume before there is any other event. Only clients since revision 2025-11-25 know such
// events. l.mu is held.
func (l *legacyStream) prepareOpening() {
	if l.session.edge.Revision < mcp.Revision20251125 {
		return
	}
	if id := l.storeEvent(nil); id != "" {
		l.opening = eventstream.Encode(eventstream.Event{ID: id, HasID: true, Retry: l.session.server.opts.Sessions.Retry})
	}
}

// storeEvent stores an event and returns its id. If that fails the id is empty, and the client
// cannot resume from this event. l.mu is held.
func (l *legacyStream) storeEvent(frame []byte) string {
	// The context is not kept in the session: most sessions store no event.
	ctx := quota.WithClient(context.Background(), l.session.client)
	id, err := l.session.server.opts.Sessions.Events.Append(ctx, l.name, frame)
	if _, isLimit := errors.AsType[*quota.LimitError](err); isLimit {
		return ""
	}
	if err != nil {
		l.hasUnstored = true
		l.session.server.opts.Logger.Warn("an event could not be stored", "err", err)
		return ""
	}
	l.lastEvent = id
	return id
}

// encodeEvent stores a frame and returns its event, with the opening before it if that is not sent
// yet. The event is nil if no client is connected. l.mu is held.
func (l *legacyStream) encodeEvent(frame []byte) []byte {
	id := l.storeEvent(frame)
	if l.conn == nil {
		return nil
	}
	event := eventstream.Event{ID: id, HasID: id != "", Data: frame}.Append(l.opening)
	l.opening = nil
	return event
}

// missedEvents returns the events after the one with id last. After [ErrEventGone], nothing can be
// sent again, and the client must ask anew for what it needs. After any other error, the client
// must try again, or it would miss events without notice.
func (l *legacyStream) missedEvents(r *http.Request, last string) (missed []missedEvent, err error) {
	if last == "" {
		return nil, nil
	}
	events, err := l.session.server.opts.Sessions.Events.After(r.Context(), last)
	if err != nil && r.Context().Err() == nil { // otherwise the client has gone
		l.session.server.opts.Logger.Warn("events could not be sent again", "err", err)
	}
	if err != nil {
		return nil, err
	}
	for id, data := range events {
		missed = append(missed, missedEvent{id, data})
	}
	return missed, nil
}

// isRetryable reports whether an error of missedEvents may go away.
func isRetryable(err error) bool { return err != nil && !errors.Is(err, ErrEventGone) }

// missedEvent is a stored event that the client has not received.
type missedEvent struct {
	id   string
	data []byte
}
