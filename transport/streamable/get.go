package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// serveGET opens the session stream, or resumes a stream after the event that Last-Event-ID names.
func (s *Server) serveGET(w http.ResponseWriter, r *http.Request) {
	if s.opts.Sessions.Disabled || s.namesModernRevision(r) {
		s.refuseMethod(w, "GET is for legacy sessions only: to receive changes, call subscriptions/listen")
		return
	}
	if !parseAccept(r.Header).stream {
		httpwire.Refuse(w, http.StatusNotAcceptable, "Accept must list text/event-stream")
		return
	}
	ss := s.findSession(w, r, jsonrpc.ID{})
	if ss == nil {
		return
	}
	client := ss.client
	if err := s.opts.Quota.OpenStream(client); err != nil {
		httpwire.RefuseLimit(w, jsonrpc.ID{}, err)
		return
	}
	defer s.opts.Quota.CloseStream(client)
	last := r.Header.Get(mcpwire.HeaderLastEventID)
	if last == "" {
		ss.ensureSessionStream().serveGET(w, r, "", "")
		return
	}
	name, ok := s.opts.Sessions.Events.Stream(last)
	switch {
	case !ok || !ss.ownsStream(name):
		httpwire.Refuse(w, http.StatusBadRequest, "Last-Event-ID names no event of this session")
	case ss.namesSessionStream(name):
		ss.ensureSessionStream().serveGET(w, r, name, last)
	default:
		s.resumeAnswer(w, r, ss, name, last)
	}
}

// resumeAnswer continues an answer stream. The stream may have ended while the store still has its
// events.
func (s *Server) resumeAnswer(w http.ResponseWriter, r *http.Request, ss *session, name, last string) {
	a := ss.answerStream(name)
	if a == nil && s.followAnswer(w, r, ss, name, last) {
		return
	}
	if a == nil {
		a = &answerStream{legacyStream: legacyStream{session: ss, name: name, ended: true}}
		missed, err := a.missedEvents(r, last)
		if isRetryable(err) {
			httpwire.RefuseBusy(w, jsonrpc.ID{}, "the messages of the stream cannot be read at the moment: try again", retryShutdown)
			return
		}
		if len(missed) == 0 {
			// A client that gets an empty stream would reconnect to it, in some clients without
			// Last-Event-ID, which opens a second session stream. The TypeScript SDK takes this
			// status for a normal end.
			s.refuseMethod(w, "the stream has ended, and all its messages were sent")
			return
		}
	}
	a.serveGET(w, r, last)
}

// serveDELETE ends a session.
func (s *Server) serveDELETE(w http.ResponseWriter, r *http.Request) {
	if s.opts.Sessions.Disabled || s.namesModernRevision(r) {
		s.refuseMethod(w, "DELETE is for legacy sessions only: revisions from 2026-07-28 on have no sessions")
		return
	}
	ss := s.findSession(w, r, jsonrpc.ID{})
	if ss == nil {
		return
	}
	if err := s.sessions.removeSession(r.Context(), ss, errDeleted); err != nil {
		s.opts.Logger.Error("the end of a session could not be stored", "err", err)
		httpwire.RefuseBusy(w, jsonrpc.ID{}, "the session has ended here, but that could not be stored", retryShutdown)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

var errDeleted = errors.New("the client has ended the session")

// getConn is the connection of a GET and the hooks that remove it from its stream.
type getConn struct {
	stream  *legacyStream
	target  getTarget // the same stream
	conn    *eventstream.Writer
	request *http.Request

	onJoin         func()      // called when the connection has become the stream's own; nil does nothing
	stopWatching   func() bool // stops the hook on the request's end; nil if the connection never joined the stream
	forgetShutdown func()      // removes the hook on Shutdown
}

// getTarget is a stream that a GET can join.
type getTarget interface {
	// joinConn makes the connection the stream's own if the client has missed no event after last.
	// Otherwise it returns the events, which the caller sends before it tries again. name and last
	// are empty for a client that does not resume. joined is false if the stream has ended, or if
	// the store cannot tell what the client has missed.
	joinConn(c *getConn, name, last string, h requestHold) (joined bool, missed []missedEvent)
	// removeConn removes the connection from the stream, if it still belongs to it.
	removeConn(conn *eventstream.Writer)
}

func newGetConn(stream *legacyStream, target getTarget, w http.ResponseWriter, r *http.Request) *getConn {
	return &getConn{stream: stream, target: target, conn: stream.session.server.newEventWriter(w, stream.session.client), request: r}
}

// openAndWait opens the connection and returns when its stream does not need it any more.
func (c *getConn) openAndWait(name, last string) {
	released := make(blockedRequest)
	c.openConn(released, name, last)
	<-released
}

// openConn gives the connection to its stream. The stream releases the hold when it does not need
// the connection any more, which may be at once.
func (c *getConn) openConn(h requestHold, name, last string) {
	if !c.replayAndJoin(name, last, h) {
		c.stream.lockOrCutOff()
		defer c.stream.mu.Unlock()
		h.release()
		return
	}
	remove := func() { c.target.removeConn(c.conn) }
	c.conn.OnDeath(remove)
	c.stopWatching = context.AfterFunc(c.request.Context(), remove)
	c.forgetShutdown = c.stream.session.server.onShutdown(remove)
}

func (c *getConn) closeConn() {
	if c.stopWatching != nil {
		c.stopWatching()
		c.forgetShutdown()
		c.target.removeConn(c.conn)
	}
	_ = c.conn.Close() // after an error the client reconnects
}

// replayAndJoin sends the events that the client has missed and then makes the connection the
// stream's own. It reports false if the connection is unusable.
func (c *getConn) replayAndJoin(name, last string, h requestHold) (joined bool) {
	if c.conn.Open() != nil {
		return false
	}
	if a, ok := c.target.(*answerStream); ok {
		a.leaveConn()
	}
	for {
		joined, missed := c.target.joinConn(c, name, last, h)
		if joined && c.onJoin != nil {
			c.onJoin()
		}
		if len(missed) == 0 {
			return joined
		}
		// The stream is not locked here, so it may store further events. The next round finds them.
		for _, e := range missed {
			frames.ShowIn(c.request.Context(), c.stream.session.server.opts.Tap, transport.Sent, e.data, nil)
			if c.conn.Send(eventstream.Event{ID: e.id, HasID: true, Data: e.data}) != nil {
				return false
			}
			last = e.id
		}
	}
}
