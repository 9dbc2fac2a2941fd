package sse

import (
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// servePOST takes a message of a session. What comes of it goes out on the stream.
func (s *Server) servePOST(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get(sessionParameter)
	if id == "" {
		overhttp.Refuse(w, http.StatusBadRequest, "the query names no "+sessionParameter+": open a stream with GET, and POST to the endpoint that it tells")
		return
	}
	ss := s.findSession(id)
	if ss == nil {
		s.refuseUnknown(w)
		return
	}
	if s.opts.Principal(r).ID != ss.principal.ID {
		overhttp.Refuse(w, http.StatusForbidden, "the session is somebody else's")
		return
	}
	frame, ok := s.bodies.Read(w, r)
	if !ok || !s.checkMessage(w, r, frame) {
		return
	}
	ss.idleTimer.noteMessage()
	r.Header[mcp.HeaderSessionID] = []string{ss.id} // where later revisions say it, for handlers that tell clients apart
	if !ss.deliverMessage(r.Context(), message{frame, r.Header}) {
		s.refuseUnknown(w)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (s *Server) refuseUnknown(w http.ResponseWriter) {
	if s.isClosing() {
		refuseBusy(w, shuttingDown)
		return
	}
	overhttp.Refuse(w, http.StatusNotFound, "there is no such session, or its stream has ended: open a stream with GET and initialize again")
}

// checkMessage reports whether a body can be given to the session. What is no JSON at all is refused here, since its answer on
// the stream would have no id; so are requests during a shutdown, while the answers that calls in flight wait for pass.
func (s *Server) checkMessage(w http.ResponseWriter, r *http.Request, frame []byte) bool {
	request := true
	if !jsonrpc.IsBatch(frame) {
		msg, err := jsonrpc.Parser{}.Parse(frame)
		var refused *jsonrpc.Error
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeParse {
			frames.Show(s.opts.Tap, transport.Stray, frame, r.Header)
			overhttp.Refuse(w, http.StatusBadRequest, "the body is no JSON: "+refused.Message)
			return false
		}
		request = err != nil || msg.IsRequest()
	}
	if request && s.isClosing() {
		refuseBusy(w, shuttingDown)
		return false
	}
	return true
}
