package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// serveGET opens the standing stream of a session, or goes on with one that was cut off.
func (s *Server) serveGET(w http.ResponseWriter, r *http.Request) {
	if s.opts.NoLegacy || s.namesModernRevision(r) {
		s.refuseMethod(w, "GET belongs to legacy sessions: changes come on subscriptions/listen")
		return
	}
	if !parseAccept(r.Header).stream {
		overhttp.Refuse(w, http.StatusNotAcceptable, "Accept must list text/event-stream")
		return
	}
	ss := s.findSession(w, r)
	if ss == nil {
		return
	}
	last := r.Header.Get(mcp.HeaderLastEventID)
	if last == "" {
		ss.ensureSessionStream().serveConn(w, r, "", "")
		return
	}
	name, ok := s.opts.Events.Stream(last)
	if !ok || !ss.ownsStream(name) {
		overhttp.Refuse(w, http.StatusBadRequest, "Last-Event-ID names no event of this session")
		return
	}
	l := ss.findStream(name)
	if l == nil { // it is over, and its events may be there still
		l = &legacyStream{session: ss, name: name, ended: true}
		if missed, _ := l.missedEvents(r, last); len(missed) == 0 {
			// A client that got an empty stream would come back for more, some without a name for what: then it has one stream too
			// many. The status is the one that the TypeScript SDK takes for an end without complaint.
			s.refuseMethod(w, "the stream has ended, and nothing of it is left to send")
			return
		}
	}
	l.serveConn(w, r, name, last)
}

// serveDELETE ends a session.
func (s *Server) serveDELETE(w http.ResponseWriter, r *http.Request) {
	if s.opts.NoLegacy || s.namesModernRevision(r) {
		s.refuseMethod(w, "DELETE belongs to legacy sessions: there are none in this revision")
		return
	}
	ss := s.findSession(w, r)
	if ss == nil {
		return
	}
	if err := s.sessions.removeSession(r.Context(), ss, errDeleted); err != nil {
		s.opts.Logger.Error("the end of a session could not be stored", "err", err)
		refuseBusy(w, "the session has ended here, and that could not be stored", retryShutdown)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

var errDeleted = errors.New("the client has ended the session")

// serveConn sends the lane over a new connection: what the client has missed, and what is to come. It returns when the connection is
// of no use any more.
func (l *legacyStream) serveConn(w http.ResponseWriter, r *http.Request, name, last string) {
	c := &getConn{target: l, conn: l.session.server.newEventWriter(w), request: r}
	var s *subscriptionRunner
	if l.isSessionStream {
		s = l.startRunner(func(s *subscriptionRunner) { c.openConn(s, name, last) }) // and not before: then the client can cause a change
	}
	if s != nil {
		s.runSubscription()
		<-s.ctx.Done()
	} else {
		gone := make(blockedRequest)
		c.openConn(gone, name, last)
		<-gone
	}
	c.closeConn()
}

// getConn is the connection of a GET, and what would end it.
type getConn struct {
	target         *legacyStream
	conn           *eventstream.Writer
	request        *http.Request
	stopWatching   func() bool // as [context.AfterFunc] returns it; nil where the connection was of no use
	forgetShutdown func()
}

// openConn gives the connection to its lane, which lets the hold go when it is of no use any more.
func (c *getConn) openConn(h requestHold, name, last string) {
	if !c.target.replayAndJoin(c.conn, c.request, name, last, h) {
		c.target.lockOrCutOff()
		defer c.target.mu.Unlock()
		h.release()
		return
	}
	drop := func() { c.target.removeConn(c.conn) }
	c.conn.OnDeath(drop)
	c.stopWatching = context.AfterFunc(c.request.Context(), drop)
	c.forgetShutdown = c.target.session.server.onShutdown(drop)
}

func (c *getConn) closeConn() {
	if c.stopWatching != nil {
		c.stopWatching()
		c.forgetShutdown()
		c.target.removeConn(c.conn)
	}
	_ = c.conn.Close() // who has gone comes back for the rest
}

// replayAndJoin makes stream the lane's connection, once the client has what it missed. It reports false where there is nothing to
// wait for.
func (l *legacyStream) replayAndJoin(stream *eventstream.Writer, r *http.Request, name, last string, h requestHold) bool {
	if stream.Open() != nil {
		return false
	}
	if !l.isSessionStream {
		l.disconnect()
	}
	for {
		joined, missed := l.joinConn(stream, r, name, last, h)
		if len(missed) == 0 {
			return joined
		}
		for _, e := range missed { // the client may take its time: what comes meanwhile is kept, and is missed in the next round
			frames.Show(l.session.server.opts.Tap, transport.Sent, e.Data, nil)
			if stream.Send(eventstream.Event{ID: e.ID, HasID: true, Data: e.Data}) != nil {
				return false
			}
			last = e.ID
		}
	}
}

// disconnect lets the connection go that the lane has, if it has one: its client is here.
func (l *legacyStream) disconnect() {
	l.lockOrCutOff()
	defer l.mu.Unlock()
	l.setConn(nil)
	l.releaseHold()
}

// joinConn makes stream the lane's connection if nothing was missed; else it returns that. A standing stream that comes back for
// what is not known any more is a new one.
func (l *legacyStream) joinConn(stream *eventstream.Writer, r *http.Request, name, last string, h requestHold) (joined bool, missed []StoredEvent) {
	l.lockOrCutOff()
	defer l.mu.Unlock()
	missed, gone := l.missedEvents(r, last)
	switch {
	case len(missed) > 0 || l.ended:
		return false, missed
	case gone && l.isSessionStream:
		name, last = "", ""
	}
	if !l.isSessionStream {
		l.releaseHold()
		l.setConn(nil)
	}
	l.addConn(stream, name, h)
	if last == "" {
		l.prepareOpening()
		l.sendOpening()
	}
	if l.replacedRunner == nil {
		l.sendQueued()
	}
	return true, nil
}

// missedEvents returns what came behind an event. What is not there any more cannot be sent: the client asks again for what it
// needs.
func (l *legacyStream) missedEvents(r *http.Request, last string) (missed []StoredEvent, gone bool) {
	if last == "" {
		return nil, false
	}
	missed, err := l.session.server.opts.Events.After(r.Context(), last)
	if err != nil {
		l.session.server.opts.Logger.Warn("events could not be sent again", "err", err)
	}
	return missed, errors.Is(err, ErrEventGone)
}

// removeConn takes the lane off a connection, if it is still the lane's.
func (l *legacyStream) removeConn(stream *eventstream.Writer) {
	l.lockOrCutOff()
	defer l.mu.Unlock()
	l.removeConnLocked(stream)
}

// isConnected reports whether a client is connected.
func (l *legacyStream) isConnected() bool {
	return l.liveConn.Load() != nil
}
