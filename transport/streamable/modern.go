package streamable

import (
	"context"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// postModern serves a message of the modern era: stateless, the response is its own.
func (s *Server) postModern(out *response) {
	if !s.checkMessage(out) {
		return
	}
	ctx, done := s.trackCall(out)
	defer done()
	out.startSlowTimer()
	out.finishResponse(s.edge.Serve(ctx, &out.in))
}

// checkMessage reports whether there is a request to serve. What is none has been answered.
func (s *Server) checkMessage(out *response) bool {
	switch msg := &out.in.Message; {
	case msg.IsResponse():
		s.refuseMessage(out.w, jsonrpc.ID{}, mcp.Errorf(jsonrpc.CodeInvalidRequest, "clients send no responses in revision %s", mcp.LatestRevision))
		return false
	case msg.IsNotification():
		s.edge.Notify(out.request.Context(), *msg)
		out.w.WriteHeader(http.StatusAccepted)
		return false
	}
	if mismatch := s.headers.checkRequest(out.request.Header, &out.in.Message, s.edge.Revisions()); mismatch != nil {
		s.refuseMessage(out.w, out.in.ID, mismatch)
		return false
	}
	return true
}

// trackCall returns the context of a request: that of a subscription ends well at Shutdown, that of a call when Shutdown waits
// no longer.
func (s *Server) trackCall(out *response) (context.Context, func()) {
	ctx := &out.ctx
	if out.in.Method == mcp.MethodListen {
		forget := s.onShutdown(func() { ctx.cancel(serving.Shutdown()) })
		return ctx, func() { forget(); ctx.releaseResources() }
	}
	s.mu.Lock()
	s.modernCalls[out] = struct{}{}
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.modernCalls, out)
		s.mu.Unlock()
		ctx.releaseResources()
	}
}

// mirroredHeaders says which member of the params of a method Mcp-Name mirrors.
type mirroredHeaders struct{ vocabulary *mcp.Vocabulary }

func newMirroredHeaders(v *mcp.Vocabulary) mirroredHeaders {
	if v == nil {
		v = mcp.NewVocabulary()
	}
	return mirroredHeaders{v}
}

// checkRequest holds the header fields of a request against its body, so that whoever routed it by them and who serves it mean
// the same (basic/transports/streamable-http: Server Validation).
func (n mirroredHeaders) checkRequest(h http.Header, msg *jsonrpc.Message, spoken []mcp.Revision) *mcp.Error {
	version, known := rawjson.String(rawjson.Lookup(rawjson.Lookup(msg.Params, "_meta"), mcp.MetaProtocolVersion))
	if !known {
		return nil // the edge says what is missing
	}
	if e := matchHeader(h, mcp.HeaderProtocolVersion, version, false); e != nil {
		return e
	}
	if !mcp.Revision(version).Modern() {
		return nil // the edge says what is spoken
	}
	if e := matchHeader(h, mcp.HeaderMethod, msg.Method, false); e != nil {
		return e
	}
	field := n.vocabulary.NameField(msg.Method)
	if field == "" {
		return nil
	}
	name, there := rawjson.String(rawjson.Lookup(msg.Params, field))
	if !there {
		if len(h[mcp.HeaderName]) > 0 {
			return headerMismatch("%s is present, but params.%s is not", mcp.HeaderName, field)
		}
		return nil // the handler says what is missing
	}
	return matchHeader(h, mcp.HeaderName, name, true)
}

// matchHeader compares the one value of a field with that of the body.
func matchHeader(h http.Header, field, body string, encoded bool) *mcp.Error {
	values := h[field]
	switch {
	case len(values) == 0:
		return headerMismatch("%s is missing", field)
	case len(values) > 1:
		return headerMismatch("%s occurs more than once", field)
	}
	value, ok := values[0], true
	if encoded {
		value, ok = mcp.DecodeHeaderValue(value)
	}
	switch {
	case !ok:
		return headerMismatch("%s is malformed", field)
	case value != body:
		return headerMismatch("the %s header value %q does not match the body value %q", field, value, body)
	}
	return nil
}

func headerMismatch(format string, args ...any) *mcp.Error {
	return mcp.Errorf(mcp.CodeHeaderMismatch, "Header mismatch: "+format, args...)
}
