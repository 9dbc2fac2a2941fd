package streamable

import (
	"net/http"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// servePOST takes one message, of either era. An open stream rests on the frames of these functions: they are kept small.
func (s *Server) servePOST(w http.ResponseWriter, r *http.Request) {
	out := s.readMessage(w, r)
	switch {
	case out == nil:
	case s.isModern(r, out.in.Params):
		s.postModern(out)
	default:
		s.postLegacy(w, r, out.in.Message, out.accept)
	}
}

// readMessage reads the message of a POST. Where it is nil, the request has been answered.
func (s *Server) readMessage(w http.ResponseWriter, r *http.Request) *response {
	accept := parseAccept(r.Header)
	if !accept.json && !accept.stream {
		overhttp.Refuse(w, http.StatusNotAcceptable, "Accept must list application/json and text/event-stream")
		return nil
	}
	frame, ok := s.bodies.Read(w, r)
	if !ok {
		return nil
	}
	tap := s.opts.Tap
	if jsonrpc.IsBatch(frame) {
		s.postBatch(w, r, frame, accept)
		return nil
	}
	msg, err := s.edge.Parse(frame)
	if err != nil {
		frames.Show(tap, transport.Stray, frame, r.Header)
		if err.(*mcp.Error).Code == jsonrpc.CodeParse {
			msg.ID = jsonrpc.ID{} // a guess is no id to answer
		}
		s.refuseMessage(w, msg.ID, err.(*mcp.Error))
		return nil
	}
	frames.Show(tap, transport.Received, frame, r.Header)
	out := &response{server: s, w: w, request: r, accept: accept, ctx: callContext{Context: r.Context()}}
	out.in = serving.Incoming{Message: msg, Principal: s.opts.Principal(r), Header: r.Header, Out: out}
	return out
}

// isModern reports whether a message is spoken in the modern era: it says so in its _meta, or its header does.
func (s *Server) isModern(r *http.Request, params []byte) bool {
	if s.opts.NoLegacy {
		return true
	}
	session := r.Header.Get(mcp.HeaderSessionID) != ""
	if raw := rawjson.Lookup(rawjson.Lookup(params, "_meta"), mcp.MetaProtocolVersion); raw != nil {
		said, _ := rawjson.String(raw)
		return !isLegacyRevision(said) || !session
	}
	if s.namesModernRevision(r) {
		return true
	}
	said := r.Header.Get(mcp.HeaderProtocolVersion)
	return said != "" && !isLegacyRevision(said) && !session
}

// namesModernRevision reports whether the header names a revision that has no sessions.
func (s *Server) namesModernRevision(r *http.Request) bool {
	return mcp.Revision(r.Header.Get(mcp.HeaderProtocolVersion)).Modern()
}

func isLegacyRevision(version string) bool {
	r := mcp.Revision(version)
	return r.Known() && !r.Modern()
}

// refuseMessage answers a message that is not served.
func (s *Server) refuseMessage(w http.ResponseWriter, id jsonrpc.ID, e *mcp.Error) {
	s.writeDocument(w, max(httpStatus(e), http.StatusBadRequest), jsonrpc.AppendError(nil, id, e))
}

func (s *Server) writeDocument(w http.ResponseWriter, status int, frame []byte) {
	frames.Show(s.opts.Tap, transport.Sent, frame, nil)
	overhttp.Respond(w, status, frame)
}
