package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// postLegacy serves a message of the legacy era.
func (s *Server) postLegacy(w http.ResponseWriter, r *http.Request, msg jsonrpc.Message, accept accepts) {
	if msg.Method == mcp.MethodInitialize && msg.IsRequest() {
		s.initialize(w, r, msg)
		return
	}
	ss := s.session(w, r)
	if ss == nil {
		return
	}
	if !msg.IsRequest() {
		s.receive(w, ss, msg)
		return
	}
	l := ss.newLane(w, accept)
	l.serve(r, single(msg))
}

// initialize opens a session.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, msg jsonrpc.Message) {
	if !s.sessions.room() {
		refuseBusy(w, errTooMany.Error(), sweepEvery)
		return
	}
	p := s.opts.Principal(r)
	ss := s.newSession(newKey(), p)
	answer, opened := s.edge.Initialize(r.Context(), &serving.Incoming{Message: msg, Principal: p, Header: r.Header, Out: discard{}}, ss)
	if opened == nil {
		if answer.Frame != nil {
			s.respond(w, max(status(answer.Error), http.StatusOK), answer.Frame)
		}
		return
	}
	ss.edge, ss.own = opened, true
	id := s.newToken(ss, opened.SessionState).seal(s.sessions.sealer, p)
	ss.id = s.sessions.fingerprint(id)
	if _, err := s.sessions.add(ss); err != nil {
		refuseBusy(w, err.Error(), sweepEvery)
		return
	}
	if !s.alone() { // so that it is idle one day, even if it is never used
		if err := ss.stored(r.Context()); err != nil {
			s.opts.Logger.Error("a session could not be stored", "err", err)
			s.sessions.drop(ss, errUnknownSession)
			refuseBusy(w, "sessions cannot be stored at the moment", retryShutdown)
			return
		}
	}
	w.Header()[mcp.HeaderSessionID] = []string{id}
	s.respond(w, http.StatusOK, answer.Frame)
}

// discard takes what a client that has not finished the handshake could not understand.
type discard struct{}

func (discard) Write([]byte) error { return nil }

// session returns the session that a request belongs to. Where it is nil, the request has been answered.
func (s *Server) session(w http.ResponseWriter, r *http.Request) *session {
	ids, version := r.Header[mcp.HeaderSessionID], r.Header.Get(mcp.HeaderProtocolVersion)
	switch {
	case len(ids) != 1 || ids[0] == "":
		overhttp.Refuse(w, http.StatusBadRequest, "the request needs one Mcp-Session-Id, which initialize is answered with, or the "+
			"_meta of revision "+string(mcp.LatestRevision))
		return nil
	case version != "" && !s.speaks(version):
		overhttp.Refuse(w, http.StatusBadRequest, "MCP-Protocol-Version is none that this server speaks with a session")
		return nil
	}
	ss, err := s.sessions.find(r.Context(), ids[0], s.opts.Principal(r))
	switch {
	case err == nil:
		return ss
	case errors.Is(err, errUnknownSession):
		overhttp.Refuse(w, http.StatusNotFound, err.Error())
	case errors.Is(err, errTooMany):
		refuseBusy(w, err.Error(), sweepEvery)
	default:
		s.opts.Logger.Error("a session could not be looked up", "err", err)
		refuseBusy(w, "sessions cannot be looked up at the moment", retryShutdown)
	}
	return nil
}

func (s *Server) speaks(version string) bool {
	for _, r := range s.edge.Revisions() {
		if string(r) == version && !r.Modern() {
			return true
		}
	}
	return false
}

// receive takes a notification, or the response to a question.
func (s *Server) receive(w http.ResponseWriter, ss *session, msg jsonrpc.Message) {
	if !ss.edge.Receive(msg) {
		s.refuse(w, jsonrpc.ID{}, mcp.Errorf(jsonrpc.CodeInvalidRequest, "the response is to nothing that this server has asked, or still waits for"))
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// single is one request.
type single jsonrpc.Message

func (s single) answer(l *lane) []byte { return l.session.answer(jsonrpc.Message(s), l) }

// answer serves a request whose messages go to l.
func (ss *session) answer(msg jsonrpc.Message, l *lane) []byte {
	r := l.request
	answer := ss.edge.Serve(r.Context(), &serving.Incoming{
		Message: msg, Principal: ss.server.opts.Principal(r), Header: r.Header, Out: l,
	})
	switch msg.Method {
	case mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		if err := ss.changed(context.WithoutCancel(r.Context())); err != nil {
			ss.server.opts.Logger.Warn("what a client has set could not be stored", "method", msg.Method, "err", err)
		}
	}
	return answer.Frame
}

// legacyBatch serves a batch where the session's revision has them.
func (s *Server) legacyBatch(w http.ResponseWriter, r *http.Request, frame []byte, accept accepts) {
	refused := mcp.Errorf(jsonrpc.CodeInvalidRequest, "batches belong to revision %s only", mcp.Revision20250326)
	if s.isClosed() {
		refuseBusy(w, "the server is shutting down", retryShutdown)
		return
	}
	if s.opts.NoLegacy || len(r.Header[mcp.HeaderSessionID]) == 0 {
		frames.Show(s.opts.Tap, transport.Malformed, frame, r.Header)
		s.refuse(w, jsonrpc.ID{}, refused)
		return
	}
	ss := s.session(w, r)
	if ss == nil {
		return
	}
	raws, err := jsonrpc.Batch(frame, maxBatch)
	switch {
	case !ss.edge.Revision.Batches():
		s.refuse(w, jsonrpc.ID{}, refused)
		return
	case err != nil:
		s.refuse(w, jsonrpc.ID{}, err.(*mcp.Error))
		return
	}
	frames.Show(s.opts.Tap, transport.Received, frame, r.Header)
	b := batch{session: ss}
	for _, raw := range raws {
		b.take(raw)
	}
	if len(b.requests)+len(b.refused) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	l := ss.newLane(w, accept)
	l.serve(r, &b)
}

const maxBatch = 1000 // messages; each costs far more than the bytes that it takes on the wire

// batch is several messages in one body (revision 2025-03-26).
type batch struct {
	session  *session
	requests []jsonrpc.Message
	refused  [][]byte
}

func (b *batch) take(raw []byte) {
	msg, err := b.session.server.edge.Parse(raw)
	if err == nil && msg.Method == mcp.MethodInitialize {
		err = mcp.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")
	}
	switch {
	case err != nil && msg.ID.IsZero():
		b.session.server.opts.Logger.Warn("an unusable message was received", "err", err) // batches have no errors without an id
	case err != nil:
		b.refused = append(b.refused, jsonrpc.AppendError(nil, msg.ID, err.(*mcp.Error)))
	case msg.IsRequest():
		b.requests = append(b.requests, msg)
	default:
		b.session.edge.Receive(msg)
	}
}

// answer serves the requests at the same time, and returns their responses as one batch.
func (b *batch) answer(l *lane) []byte {
	frames := make([][]byte, len(b.requests))
	var wg sync.WaitGroup
	for i, msg := range b.requests {
		wg.Go(func() { frames[i] = b.session.answer(msg, l) })
	}
	wg.Wait()
	var out []byte
	for _, frame := range append(b.refused, frames...) {
		if frame == nil {
			continue
		}
		if out == nil {
			out = append(out, '[')
		} else {
			out = append(out, ',')
		}
		out = append(out, frame...)
	}
	if out == nil {
		return nil
	}
	return append(out, ']')
}
