package streamable

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// postLegacy serves a message of the legacy era.
func (s *Server) postLegacy(w http.ResponseWriter, r *http.Request, msg jsonrpc.Message, accept acceptedTypes) {
	if msg.Method == mcpwire.MethodInitialize && msg.IsRequest() {
		s.openSession(w, r, msg)
		return
	}
	var id jsonrpc.ID
	if msg.IsRequest() {
		id = msg.ID
	}
	ss := s.findSession(w, r, id)
	if ss == nil {
		return
	}
	if !msg.IsRequest() {
		s.receiveMessage(w, r, ss, msg)
		return
	}
	ss.newAnswerStream(w, accept).serveAnswer(r, singleRequest(msg))
}

// openSession answers initialize and opens a session.
func (s *Server) openSession(w http.ResponseWriter, r *http.Request, msg jsonrpc.Message) {
	p := s.opts.Principal(r)
	ss := s.newSession(newSessionKey(), p, httpwire.ClientOf(r, p))
	answer, opened := s.edge.Initialize(r.Context(), &serving.Incoming{Message: msg, Principal: p, Header: r.Header, Out: discardWriter{}}, ss)
	if opened == nil {
		if answer.Frame != nil {
			s.writeDocument(w, r, max(httpStatus(answer.Error), http.StatusOK), answer.Frame)
		}
		return
	}
	ss.edge, ss.mintedHere = opened, true
	id := s.newSessionToken(ss, opened.SessionState).sealID(s.sessions.sealer, p)
	ss.id = s.sessions.fingerprintOf(id)
	if _, err := s.sessions.addSession(ss); err != nil {
		httpwire.RefuseLimit(w, msg.ID, err)
		return
	}
	if !s.hasPrivateStore() { // then the session expires even if no replica ever uses it
		if err := ss.saveUse(r.Context()); err != nil {
			s.opts.Logger.Error("a session could not be stored", "err", err)
			s.sessions.dropSession(ss, errUnknownSession)
			httpwire.RefuseBusy(w, msg.ID, "sessions cannot be stored at the moment", retryShutdown)
			return
		}
	}
	w.Header()[mcpwire.HeaderSessionID] = []string{id}
	s.writeDocument(w, r, http.StatusOK, answer.Frame)
}

// discardWriter drops messages for a client that has not finished the handshake.
type discardWriter struct{}

func (discardWriter) Write([]byte) error { return nil }

// findSession returns the session of an HTTP request. If it is nil, the request has been answered,
// with id as the id of the error; id is zero if the HTTP request carries no request of the
// protocol.
func (s *Server) findSession(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) *session {
	ids, version := r.Header[mcpwire.HeaderSessionID], r.Header.Get(mcpwire.HeaderProtocolVersion)
	switch {
	case len(ids) != 1 || ids[0] == "":
		httpwire.RefuseRequest(w, id, http.StatusBadRequest, "the request needs the Mcp-Session-Id from the answer to initialize, or "+
			"the _meta of revision "+string(mcp.LatestRevision))
		return nil
	case version != "" && !s.speaksLegacy(version):
		httpwire.RefuseRequest(w, id, http.StatusBadRequest, "this server has no sessions of the revision in MCP-Protocol-Version")
		return nil
	}
	ss, err := s.sessions.findSession(r, ids[0], s.opts.Principal(r))
	var limit *quota.LimitError
	switch {
	case err == nil:
		return ss
	case errors.As(err, &limit):
		httpwire.RefuseLimit(w, id, limit)
	case errors.Is(err, errUnknownSession):
		httpwire.RefuseRequest(w, id, http.StatusNotFound, err.Error())
	default:
		s.opts.Logger.Error("a session could not be looked up", "err", err)
		httpwire.RefuseBusy(w, id, "sessions cannot be looked up at the moment", retryShutdown)
	}
	return nil
}

func (s *Server) speaksLegacy(version string) bool {
	for _, r := range s.edge.Revisions() {
		if string(r) == version && !r.Modern() {
			return true
		}
	}
	return false
}

// receiveMessage takes a notification or the response to a question.
func (s *Server) receiveMessage(w http.ResponseWriter, r *http.Request, ss *session, msg jsonrpc.Message) {
	err := s.deliverMessage(r, ss, msg)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, replica.ErrUnreachable):
		httpwire.RefuseBusy(w, jsonrpc.ID{}, err.Error(), retryShutdown)
	default:
		s.refuseMessage(w, r, jsonrpc.ID{}, mcp.Errorf(jsonrpc.CodeInvalidRequest, "%v", err))
	}
}

// singleRequest is the one request of a POST.
type singleRequest jsonrpc.Message

func (s singleRequest) serveOn(a *answerStream) []byte {
	return a.session.serveRequest(jsonrpc.Message(s), a)
}

func (s singleRequest) refuseAnswer(limit *quota.LimitError) []byte {
	return serving.RefuseAnswer(s.ID, limit)
}

// serveRequest serves a request. Its notifications and questions go to a.
func (ss *session) serveRequest(msg jsonrpc.Message, a *answerStream) []byte {
	r := a.request
	answer := ss.edge.Serve(r.Context(), &serving.Incoming{
		Message: msg, Principal: ss.server.opts.Principal(r), Header: r.Header, Out: a,
	})
	switch msg.Method {
	case mcpwire.MethodSetLevel, mcpwire.MethodSubscribe, mcpwire.MethodUnsubscribe:
		if err := ss.saveSettings(context.WithoutCancel(r.Context()), msg); err != nil {
			ss.server.opts.Logger.Warn("a setting of a client could not be stored", "method", msg.Method, "err", err)
			return jsonrpc.AppendError(nil, msg.ID, mcp.Errorf(jsonrpc.CodeInternal, "the setting could not be stored: try again"))
		} else if ss.server.replicas != nil {
			ss.server.tellPeers(ss.server.newPeerMessage(r, ss, peerSet)) // one of them may carry the session stream
		}
	}
	return answer.Frame
}

// postBatch serves a batch, if the revision of the session allows batches.
func (s *Server) postBatch(w http.ResponseWriter, r *http.Request, frame []byte, accept acceptedTypes) {
	refused := mcp.Errorf(jsonrpc.CodeInvalidRequest, "batches belong to revision %s only", mcp.Revision20250326)
	if s.isClosed() {
		httpwire.RefuseBusy(w, jsonrpc.ID{}, httpwire.ErrShutdown.Error(), retryShutdown)
		return
	}
	if s.opts.Sessions.Disabled || len(r.Header[mcpwire.HeaderSessionID]) == 0 {
		frames.ShowIn(r.Context(), s.opts.Tap, transport.Malformed, frame, r.Header)
		s.refuseMessage(w, r, jsonrpc.ID{}, refused)
		return
	}
	ss := s.findSession(w, r, jsonrpc.ID{})
	if ss == nil {
		return
	}
	raws, err := mcpwire.SplitBatch(frame, maxBatch)
	switch {
	case !mcpwire.AllowsBatches(ss.edge.Revision):
		s.refuseMessage(w, r, jsonrpc.ID{}, refused)
		return
	case err != nil:
		s.refuseMessage(w, r, jsonrpc.ID{}, err.(*mcp.Error))
		return
	}
	frames.ShowIn(r.Context(), s.opts.Tap, transport.Received, frame, r.Header)
	b := requestBatch{session: ss, request: r, answer: serving.NewBatchAnswer(quota.Account{Quota: s.opts.Quota, Client: ss.client})}
	for _, raw := range raws {
		b.addMessage(raw)
	}
	if missing := b.missingScopes(r); missing != nil {
		httpwire.RefuseScopes(w, r, jsonrpc.ID{}, missing)
		return
	}
	if len(b.requests) == 0 && !b.isRefused {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ss.newAnswerStream(w, accept).serveAnswer(r, &b)
}

const maxBatch = 1000 // messages; serving one costs far more than its bytes on the wire

// requestBatch is the batch of messages in one body (revision 2025-03-26).
type requestBatch struct {
	session   *session
	request   *http.Request
	requests  []jsonrpc.Message
	answer    *serving.BatchAnswer
	isRefused bool // answer contains a refusal
}

func (b *requestBatch) addMessage(raw []byte) {
	msg, err := b.session.server.edge.Parse(raw)
	if err == nil && msg.Method == mcpwire.MethodInitialize {
		err = mcp.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")
	}
	switch {
	case err != nil && msg.ID.IsZero():
		b.session.server.opts.Logger.Warn("an unusable message was received", "err", err) // a batch answers no message without an id
	case err != nil:
		b.isRefused = true
		b.answer.Add(msg.ID, jsonrpc.AppendError(nil, msg.ID, err.(*mcp.Error)))
	case msg.IsRequest():
		b.requests = append(b.requests, msg)
	default:
		if err := b.session.server.deliverMessage(b.request, b.session, msg); err != nil {
			b.session.server.opts.Logger.Warn("a message of a batch could not be delivered", "err", err)
		}
	}
}

// missingScopes returns all scopes that the requests need if the principal lacks one of them.
func (b *requestBatch) missingScopes(r *http.Request) (all []string) {
	s := b.session.server
	principal := s.opts.Principal(r)
	for _, msg := range b.requests {
		all = append(all, s.scopes.Missing(r.Context(), principal, &msg)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// serveOn serves the requests concurrently and returns their responses as one batch.
func (b *requestBatch) serveOn(a *answerStream) []byte {
	var wg sync.WaitGroup
	for _, msg := range b.requests {
		wg.Go(func() { b.answer.Add(msg.ID, b.session.serveRequest(msg, a)) })
	}
	wg.Wait()
	return b.answer.Take()
}

func (b *requestBatch) refuseAnswer(limit *quota.LimitError) []byte { return b.answer.Refuse(limit) }
