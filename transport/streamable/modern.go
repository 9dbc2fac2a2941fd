package streamable

import (
	"net/http"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// postModern serves a message of the modern era.
func (s *Server) postModern(out *response) {
	if !s.checkMessage(out) {
		return
	}
	if out.in.Method == mcp.MethodListen {
		client := out.client()
		if err := s.opts.Quota.OpenStream(client); err != nil {
			httpwire.RefuseLimit(out.w, out.in.ID, err)
			return
		}
		defer s.opts.Quota.CloseStream(client)
	}
	untrack := s.trackCall(out)
	defer untrack(out)
	out.startSlowTimer()
	out.finishResponse(s.edge.Serve(&out.ctx, &out.in))
}

// checkMessage reports whether the message is a request that can be served. Otherwise it has
// answered it.
func (s *Server) checkMessage(out *response) bool {
	switch msg := &out.in.Message; {
	case msg.IsResponse():
		s.refuseMessage(out.w, out.request, jsonrpc.ID{}, mcp.Errorf(jsonrpc.CodeInvalidRequest, "clients send no responses in revision %s", mcp.LatestRevision))
		return false
	case msg.IsNotification():
		s.edge.Notify(out.request.Context(), *msg)
		out.w.WriteHeader(http.StatusAccepted)
		return false
	}
	if mismatch := s.headers.checkRequest(out.request.Header, &out.in.Message, s.edge.Revisions()); mismatch != nil {
		s.refuseMessage(out.w, out.request, out.in.ID, mismatch)
		return false
	}
	return true
}

// trackCall notes a request until the returned function is called with it. Shutdown ends
// subscriptions with a result at once. It cancels calls only when it does not wait any longer.
func (s *Server) trackCall(out *response) (untrack func(*response)) {
	if out.in.Method == mcp.MethodListen {
		forget := s.onShutdown(func() { out.ctx.Cancel(serving.Shutdown()) })
		return func(out *response) { forget(); out.ctx.Release() }
	}
	s.mu.Lock()
	s.modernCalls[out] = struct{}{}
	s.mu.Unlock()
	return untrackCall
}

// untrackCall is a function without captured variables, so that it needs no allocation.
func untrackCall(out *response) {
	s := out.server
	s.mu.Lock()
	delete(s.modernCalls, out)
	s.mu.Unlock()
	out.ctx.Release()
}

// mirroredHeaders knows which member of a method's params the field Mcp-Name mirrors.
type mirroredHeaders struct{ vocabulary mcpwire.Vocabulary }

// checkRequest compares the header fields of a request with its body. A proxy that routes by the
// fields must not be deceived about the request (basic/transports/streamable-http: Server
// Validation).
func (n mirroredHeaders) checkRequest(h http.Header, msg *jsonrpc.Message, supported []mcp.Revision) *mcp.Error {
	version, known := mcpwire.ReadRevision(rawjson.Lookup(rawjson.Lookup(msg.Params, "_meta"), mcpwire.MetaProtocolVersion))
	if !known {
		return nil // the edge reports the missing version
	}
	if e := matchHeader(h, mcpwire.HeaderProtocolVersion, string(version), false); e != nil {
		return e
	}
	if !version.Modern() {
		return nil // the edge reports the unknown version
	}
	if e := matchHeader(h, mcpwire.HeaderMethod, msg.Method, false); e != nil {
		return e
	}
	field := n.vocabulary.NameField(msg.Method)
	if field == "" {
		return nil
	}
	name, ok := rawjson.String(rawjson.Lookup(msg.Params, field))
	if !ok {
		if len(h[mcpwire.HeaderName]) > 0 {
			return headerMismatch("%s is present, but params.%s is not", mcpwire.HeaderName, field)
		}
		return nil // the handler reports the missing member
	}
	return matchHeader(h, mcpwire.HeaderName, name, true)
}

// matchHeader checks that a header field has exactly one value, and that it equals the value in the
// body.
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
		value, ok = mcpwire.DecodeHeaderValue(value)
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
