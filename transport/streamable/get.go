package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// get opens the standing stream of a session, or goes on with one that was cut off.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if s.opts.NoLegacy || s.modernVersion(r) {
		s.refuseMethod(w, "GET belongs to legacy sessions: changes come on subscriptions/listen")
		return
	}
	if !accepted(r.Header).stream {
		overhttp.Refuse(w, http.StatusNotAcceptable, "Accept must list text/event-stream")
		return
	}
	ss := s.session(w, r)
	if ss == nil {
		return
	}
	last := r.Header.Get(mcpwire.HeaderLastEventID)
	if last == "" {
		ss.standing().attach(w, r, "", "")
		return
	}
	name, ok := s.opts.Events.Stream(last)
	if !ok || !ss.named(name) {
		overhttp.Refuse(w, http.StatusBadRequest, "Last-Event-ID names no event of this session")
		return
	}
	l := ss.lane(name)
	if l == nil { // it is over, and its events may be there still
		l = &lane{session: ss, name: name, over: true}
		if missed, _ := l.missed(r, last); len(missed) == 0 {
			// A client that got an empty stream would come back for more, some without a name for what: then it has one stream too
			// many. The status is the one that the TypeScript SDK takes for an end without complaint.
			s.refuseMethod(w, "the stream has ended, and nothing of it is left to send")
			return
		}
	}
	l.attach(w, r, name, last)
}

// delete ends a session.
func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	if s.opts.NoLegacy || s.modernVersion(r) {
		s.refuseMethod(w, "DELETE belongs to legacy sessions: there are none in this revision")
		return
	}
	ss := s.session(w, r)
	if ss == nil {
		return
	}
	if err := s.sessions.remove(r.Context(), ss, errDeleted); err != nil {
		s.opts.Logger.Error("the end of a session could not be stored", "err", err)
		refuseBusy(w, "the session has ended here, and that could not be stored", retryShutdown)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

var errDeleted = errors.New("the client has ended the session")

// attach sends the lane over a new connection: what the client has missed, and what is to come. It returns when the connection is
// of no use any more.
func (l *lane) attach(w http.ResponseWriter, r *http.Request, name, last string) {
	c := &attachment{lane: l, stream: l.session.server.newStream(w), request: r}
	var s *shift
	if l.standing {
		s = l.next(func(s *shift) { c.open(s, name, last) }) // and not before: then the client can cause a change
	}
	if s != nil {
		s.stand()
		<-s.ctx.Done()
	} else {
		gone := make(parked)
		c.open(gone, name, last)
		<-gone
	}
	c.close()
}

// attachment is the connection of a GET, and what would end it.
type attachment struct {
	lane     *lane
	stream   *eventstream.Writer
	request  *http.Request
	gone     func() bool // as [context.AfterFunc] returns it; nil where the connection was of no use
	shutdown func()
}

// open gives the connection to its lane, which lets the hold go when it is of no use any more.
func (c *attachment) open(h hold, name, last string) {
	if !c.lane.connect(c.stream, c.request, name, last, h) {
		c.lane.lock()
		defer c.lane.mu.Unlock()
		h.letGo()
		return
	}
	drop := func() { c.lane.drop(c.stream) }
	c.stream.OnDeath(drop)
	c.gone = context.AfterFunc(c.request.Context(), drop)
	c.shutdown = c.lane.session.server.onShutdown(drop)
}

func (c *attachment) close() {
	if c.gone != nil {
		c.gone()
		c.shutdown()
		c.lane.drop(c.stream)
	}
	_ = c.stream.Close() // who has gone comes back for the rest
}

// connect makes stream the lane's connection, once the client has what it missed. It reports false where there is nothing to
// wait for.
func (l *lane) connect(stream *eventstream.Writer, r *http.Request, name, last string, h hold) bool {
	if stream.Open() != nil {
		return false
	}
	if !l.standing {
		l.leave()
	}
	for {
		joined, missed := l.join(stream, r, name, last, h)
		if len(missed) == 0 {
			return joined
		}
		for _, e := range missed { // the client may take its time: what comes meanwhile is kept, and is missed in the next round
			l.session.server.opts.Tap.Show(transport.Sent, e.Data, nil)
			if stream.Send(eventstream.Event{ID: e.ID, HasID: true, Data: e.Data}) != nil {
				return false
			}
			last = e.ID
		}
	}
}

// leave lets the connection go that the lane has, if it has one: its client is here.
func (l *lane) leave() {
	l.lock()
	defer l.mu.Unlock()
	l.carry(nil)
	l.release()
}

// join makes stream the lane's connection if nothing was missed; else it returns that. A standing stream that comes back for
// what is not known any more is a new one.
func (l *lane) join(stream *eventstream.Writer, r *http.Request, name, last string, h hold) (joined bool, missed []StoredEvent) {
	l.lock()
	defer l.mu.Unlock()
	missed, gone := l.missed(r, last)
	switch {
	case len(missed) > 0 || l.over:
		return false, missed
	case gone && l.standing:
		name, last = "", ""
	}
	if !l.standing {
		l.release()
		l.carry(nil)
	}
	l.give(stream, name, h)
	if last == "" {
		l.prime()
		l.flush()
	}
	if l.relieved == nil {
		l.catchUp()
	}
	return true, nil
}

// missed returns what came behind an event. What is not there any more cannot be sent: the client asks again for what it
// needs.
func (l *lane) missed(r *http.Request, last string) (missed []StoredEvent, gone bool) {
	if last == "" {
		return nil, false
	}
	missed, err := l.session.server.opts.Events.After(r.Context(), last)
	if err != nil {
		l.session.server.opts.Logger.Warn("events could not be sent again", "err", err)
	}
	return missed, errors.Is(err, ErrEventGone)
}

// drop takes the lane off a connection, if it is still the lane's.
func (l *lane) drop(stream *eventstream.Writer) {
	l.lock()
	defer l.mu.Unlock()
	l.lose(stream)
}

// attached reports whether a client is connected.
func (l *lane) attached() bool {
	return l.current.Load() != nil
}
