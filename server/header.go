package server

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// Headers are the arguments of a tool that clients mirror into HTTP header fields. A [Server]
// checks its own tools; a handler that forwards calls must check them itself.
type Headers []header

// header is an argument that is mirrored into an HTTP header field (server/tools: x-mcp-header).
type header struct {
	schema.Header
	field string // canonical: Mcp-Param-Region
}

// NewHeaders reads the x-mcp-header marks in a tool's input schema. The error comes from
// [schema.Headers].
func NewHeaders(input json.RawMessage) (Headers, error) {
	declared, err := schema.Headers(input)
	return newHeaders(declared), err
}

func newHeaders(declared []schema.Header) (all Headers) {
	for _, h := range declared {
		all = append(all, header{h, mcpwire.CanonicalField(mcpwire.HeaderParamPrefix + h.Name)})
	}
	return all
}

// Check compares the header fields of a modern request over Streamable HTTP with its arguments, so
// that a router that reads the fields and the server that reads the arguments agree. The error is a
// protocol error. Other requests pass: on other transports no field mirrors a message, and the field
// Mcp-Method, which Streamable HTTP requires, is absent.
func (headers Headers) Check(req *mcp.Request, arguments json.RawMessage) error {
	if len(req.Header[mcpwire.HeaderMethod]) == 0 || !req.Revision.Modern() {
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
func (h *header) compareValues(values []string, arguments json.RawMessage) string {
	body := h.lookupArgument(arguments)
	switch {
	case body == nil && len(values) == 0:
		return ""
	case body == nil:
		return "is present, but the arguments have no such value"
	case len(values) == 0:
		if _, mirrored := mcpwire.HeaderArgument(body); mirrored {
			return "is missing"
		}
		return "" // the validation of the arguments refuses it, with a message for the model
	case len(values) > 1:
		return "occurs more than once"
	}
	value, ok := mcpwire.DecodeHeaderValue(values[0])
	if !ok {
		return "is malformed"
	}
	if !h.matchesValue(value, body) {
		return "does not match the value in the arguments"
	}
	return ""
}

// lookupArgument returns the raw value at the header's path, or nil if it is absent or null.
func (h *header) lookupArgument(arguments json.RawMessage) []byte {
	value := []byte(arguments)
	for _, name := range h.Path {
		if value = rawjson.Lookup(value, name); value == nil {
			return nil
		}
	}
	if rawjson.IsNull(value) {
		return nil
	}
	return value
}

// matchesValue compares strings and booleans literally, and numbers by value. It uses the type of
// the value in the body; if that is not the declared type, the validation of the arguments refuses
// it. Arrays and objects cannot be mirrored and match nothing.
func (h *header) matchesValue(value string, body []byte) bool {
	switch body = bytes.TrimSpace(body); body[0] {
	case '"':
		text, ok := unescapeString(body)
		return ok && string(text) == value
	case 't', 'f':
		return string(body) == value
	}
	sent, ok := rawjson.CanonicalNumber([]byte(value))
	meant, valid := rawjson.CanonicalNumber(body)
	return ok && valid && bytes.Equal(sent, meant)
}
