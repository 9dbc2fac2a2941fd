package sse

import (
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// servePOST takes a message for a session. The answer goes over the stream.
func (s *Server) servePOST(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get(sessionParameter)
	if id == "" {
		httpwire.Refuse(w, http.StatusBadRequest, "the query has no "+sessionParameter+": open a stream with GET, and POST to the endpoint in its first event")
		return
	}
	ss, ok := s.sessions.Find(id)
	if owner := s.peers.ownerOf(id); !ok && owner != "" {
		s.forwardPOST(w, r, owner, id)
		return
	}
	if !ok {
		s.refuseUnknown(w)
		return
	}
	principal := s.opts.Principal(r)
	if principal.ID != ss.principal.ID {
		refuseOther(w)
		return
	}
	frame, ok := s.bodies.Read(w, r, principal)
	if !ok || !s.checkMessage(w, r, frame, principal) {
		return
	}
	ss.idleTimer.noteMessage()
	r.Header[mcpwire.HeaderSessionID] = []string{ss.id} // for handlers that tell clients apart by this field of later revisions
	if !ss.deliverMessage(r.Context(), message{frame, r.Header, principal}) {
		s.refuseUnknown(w)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (s *Server) refuseUnknown(w http.ResponseWriter) {
	if s.sessions.IsClosing() {
		httpwire.RefuseBusy(w, jsonrpc.ID{}, httpwire.ErrShutdown.Error(), retryAfter)
		return
	}
	refuseEnded(w)
}

func refuseEnded(w http.ResponseWriter) {
	httpwire.Refuse(w, http.StatusNotFound, "the session is unknown, or its stream has ended: open a stream with GET and initialize again")
}

// refuseOther refuses a message of another principal than the session's.
func refuseOther(w http.ResponseWriter) {
	httpwire.Refuse(w, http.StatusForbidden, "the session belongs to another principal")
}

// checkMessage reports whether a body can be passed to the session. It refuses a body that is not
// JSON here, because an error on the stream would have no id. During a shutdown it refuses
// requests, but not the answers that calls in flight wait for.
func (s *Server) checkMessage(w http.ResponseWriter, r *http.Request, frame []byte, p mcp.Principal) bool {
	request, id := true, jsonrpc.ID{}
	if !mcpwire.IsBatch(frame) {
		msg, err := jsonrpc.Parse(frame, nil)
		var refused *jsonrpc.Error
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeParse {
			frames.Show(s.opts.Tap, transport.Malformed, frame, r.Header)
			httpwire.Refuse(w, http.StatusBadRequest, "the body is not JSON: "+refused.Message)
			return false
		}
		if request = err != nil || msg.IsRequest(); request {
			id = msg.ID
		}
		if missing := s.scopes.Missing(r.Context(), p, &msg); missing != nil {
			httpwire.RefuseScopes(w, r, id, missing)
			return false
		}
	}
	if request && s.sessions.IsClosing() {
		httpwire.RefuseBusy(w, id, httpwire.ErrShutdown.Error(), retryAfter)
		return false
	}
	return true
}
