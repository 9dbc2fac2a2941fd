package streamable

import (
	"mime"
	"net/http"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// servePOST serves one message, of either era. It and the functions that it calls for a stream are
// kept small, because their stack frames count for each open stream.
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

// readMessage reads the message of a POST. If it returns nil, it has answered the request.
func (s *Server) readMessage(w http.ResponseWriter, r *http.Request) *response {
	accept := parseAccept(r.Header)
	if !accept.json && !accept.stream {
		httpwire.Refuse(w, http.StatusNotAcceptable, "Accept must list application/json and text/event-stream")
		return nil
	}
	principal := s.opts.Principal(r)
	frame, ok := s.bodies.Read(w, r, principal)
	if !ok {
		return nil
	}
	if mcpwire.IsBatch(frame) {
		s.postBatch(w, r, frame, accept)
		return nil
	}
	msg, err := s.edge.Parse(frame)
	if err != nil {
		frames.ShowIn(r.Context(), s.opts.Tap, transport.Malformed, frame, r.Header)
		if err.(*mcp.Error).Code == jsonrpc.CodeParse {
			msg.ID = jsonrpc.ID{} // a parser's guess must not be used as the id
		}
		s.refuseMessage(w, r, msg.ID, err.(*mcp.Error))
		return nil
	}
	frames.ShowIn(r.Context(), s.opts.Tap, transport.Received, frame, r.Header)
	if missing := s.scopes.Missing(r.Context(), principal, &msg); missing != nil {
		httpwire.RefuseScopes(w, r, msg.ID, missing)
		return nil
	}
	out := &response{server: s, w: w, request: r, accept: accept}
	out.ctx.Init(r.Context())
	out.in = serving.Incoming{Message: msg, Principal: principal, Header: r.Header, Out: out}
	return out
}

// isModern reports whether a message belongs to the modern era, by its _meta or else by its header.
func (s *Server) isModern(r *http.Request, params []byte) bool {
	if s.opts.Sessions.Disabled {
		return true
	}
	session := r.Header.Get(mcpwire.HeaderSessionID) != ""
	if raw := rawjson.Lookup(rawjson.Lookup(params, "_meta"), mcpwire.MetaProtocolVersion); raw != nil {
		version, _ := mcpwire.ReadRevision(raw)
		return !isLegacyRevision(version) || !session
	}
	if s.namesModernRevision(r) {
		return true
	}
	version := mcp.Revision(r.Header.Get(mcpwire.HeaderProtocolVersion))
	return version != "" && !isLegacyRevision(version) && !session
}

// namesModernRevision reports whether the header names a revision without sessions.
func (s *Server) namesModernRevision(r *http.Request) bool {
	return mcp.Revision(r.Header.Get(mcpwire.HeaderProtocolVersion)).Modern()
}

func isLegacyRevision(r mcp.Revision) bool {
	return r.Known() && !r.Modern()
}

// refuseMessage answers a message with an error.
func (s *Server) refuseMessage(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, e *mcp.Error) {
	s.writeDocument(w, r, max(httpStatus(e), http.StatusBadRequest), jsonrpc.AppendError(nil, id, e))
}

// writeDocument answers the request r.
func (s *Server) writeDocument(w http.ResponseWriter, r *http.Request, status int, frame []byte) {
	frames.ShowIn(r.Context(), s.opts.Tap, transport.Sent, frame, nil)
	httpwire.WriteDocument(w, status, frame)
}

// writeAnswer is writeDocument for an answer that counts while the client reads it.
func (s *Server) writeAnswer(w http.ResponseWriter, r *http.Request, status int, frame []byte, c quota.Client) error {
	frames.ShowIn(r.Context(), s.opts.Tap, transport.Sent, frame, nil)
	return httpwire.WriteCounted(w, status, frame, quota.Account{Quota: s.opts.Quota, Client: c})
}

// acceptedTypes are the media types that a client accepts as the answer to a POST.
type acceptedTypes struct{ json, stream bool }

// parseAccept reads the Accept field. It should name both types, but a client that names one of
// them is served too.
func parseAccept(header http.Header) acceptedTypes {
	values := header["Accept"]
	if len(values) == 0 {
		return acceptedTypes{json: true, stream: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return acceptedTypes{json: true, stream: true}
	}
	var a acceptedTypes
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || params["q"] == "0" {
			continue
		}
		a.json = a.json || media == "application/json" || media == "application/*" || media == "*/*"
		a.stream = a.stream || media == "text/event-stream" || media == "text/*" || media == "*/*"
	}
	return a
}

// httpStatus returns the HTTP status of a modern response that is one document (basic/index,
// basic/transports/streamable-http). It is 200 for errors of the handler itself, because the
// exchange of messages succeeded.
func httpStatus(e *mcp.Error) int {
	if e == nil {
		return http.StatusOK
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
