package mcpwire

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/toolheader"
	"github.com/dowel-mcp/dowel/mcp"
)

// ToolHeaders are the arguments of a tool that clients mirror into HTTP header fields.
type ToolHeaders []toolHeader

type toolHeader struct {
	toolheader.Header
	field string // canonical: Mcp-Param-Region
}

// ReadToolHeaders reads the x-mcp-header marks in a tool's input schema. The error comes from
// [toolheader.List].
func ReadToolHeaders(input json.RawMessage) (all ToolHeaders, err error) {
	listed, err := toolheader.List(input)
	for _, h := range listed {
		all = append(all, toolHeader{h, CanonicalField(HeaderParamPrefix + h.Name)})
	}
	return all, err
}

// CheckRequest compares the header fields of a modern request over Streamable HTTP with its
// arguments, so that a router that reads the fields and the server that reads the arguments agree.
// The error is a protocol error. Other requests pass: on other transports no field mirrors a
// message, and the field Mcp-Method, which Streamable HTTP requires, is absent.
func (headers ToolHeaders) CheckRequest(req *mcp.Request, arguments json.RawMessage) error {
	if len(req.Header[HeaderMethod]) == 0 || !req.Revision.Modern() {
		return nil
	}
	for _, h := range headers {
		if problem := h.compareValues(req.Header[h.field], arguments); problem != "" {
			return mcp.Errorf(mcp.CodeHeaderMismatch, "Header mismatch: %s %s", h.field, problem)
		}
	}
	return nil
}

// compareValues returns the problem with the field's values, or "" without one.
func (h *toolHeader) compareValues(values []string, arguments json.RawMessage) string {
	body := h.Lookup(arguments)
	if rawjson.IsNull(body) {
		body = nil
	}
	switch {
	case body == nil && len(values) == 0:
		return ""
	case body == nil:
		return "is present, but the arguments have no such value"
	case len(values) == 0:
		if _, mirrored := HeaderArgument(body); mirrored {
			return "is missing"
		}
		return "" // the validation of the arguments refuses it, with a message for the model
	case len(values) > 1:
		return "occurs more than once"
	}
	value, ok := DecodeHeaderValue(values[0])
	if !ok {
		return "is malformed"
	}
	if !matchesArgument(value, body) {
		return "does not match the value in the arguments"
	}
	return ""
}

// matchesArgument compares strings and booleans literally, and numbers by value. It uses the type
// of the value in the body; if that is not the declared type, the validation of the arguments
// refuses it. Arrays and objects cannot be mirrored and match nothing.
func matchesArgument(value string, body []byte) bool {
	switch body = bytes.TrimSpace(body); body[0] {
	case '"':
		return rawjson.Is(body, value)
	case 't', 'f':
		return string(body) == value
	}
	sent, ok := rawjson.CanonicalNumber([]byte(value))
	want, valid := rawjson.CanonicalNumber(body)
	return ok && valid && bytes.Equal(sent, want)
}
