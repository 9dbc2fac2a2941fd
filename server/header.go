package server

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// Headers are the arguments of a tool that are mirrored into HTTP header fields. A [Server] checks those of its tools itself;
// what forwards calls has to.
type Headers []header

// header is an argument that is mirrored into an HTTP header field (server/tools: x-mcp-header).
type header struct {
	schema.Header
	field string // canonical: Mcp-Param-Region
}

// NewHeaders reads the marks in a tool's input schema. The error is that of [schema.Headers].
func NewHeaders(input json.RawMessage) (Headers, error) {
	declared, err := schema.Headers(input)
	return newHeaders(declared), err
}

func newHeaders(declared []schema.Header) (all Headers) {
	for _, h := range declared {
		all = append(all, header{h, mcp.CanonicalField(mcp.HeaderParamPrefix + h.Name)})
	}
	return all
}

// Check holds the header fields of a modern request over HTTP against its arguments, so that whoever routed it by them and who
// runs it mean the same. The error is a protocol error; requests of other kinds have none.
func (headers Headers) Check(req *mcp.Request, arguments json.RawMessage) error {
	if req.Header == nil || !req.Revision.Modern() {
		return nil
	}
	for _, h := range headers {
		if problem := h.compareValues(req.Header[h.field], arguments); problem != "" {
			return mcp.Errorf(mcp.CodeHeaderMismatch, "Header mismatch: %s %s", h.field, problem)
		}
	}
	return nil
}

// compareValues returns what is wrong with the field's values; empty if nothing is.
func (h *header) compareValues(values []string, arguments json.RawMessage) string {
	body := h.lookupArgument(arguments)
	switch {
	case body == nil && len(values) == 0:
		return ""
	case body == nil:
		return "is present, but the arguments have no such value"
	case len(values) == 0:
		if _, mirrored := mcp.HeaderArgument(body); mirrored {
			return "is missing"
		}
		return "" // for the validation of the arguments to refuse, in words that a model can read
	case len(values) > 1:
		return "occurs more than once"
	}
	value, ok := mcp.DecodeHeaderValue(values[0])
	if !ok {
		return "is malformed"
	}
	if !h.matchesValue(value, body) {
		return "does not match the value in the arguments"
	}
	return ""
}

// lookupArgument returns the raw value at the header's path, nil if it is absent or null.
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

// matchesValue compares strings and booleans as they are, and numbers by their value. It goes by the type of the value in the
// body: one that is not of the declared type is for the validation of the arguments to refuse. Arrays and objects have no
// form in a field, and match nothing.
func (h *header) matchesValue(value string, body []byte) bool {
	switch body = bytes.TrimSpace(body); body[0] {
	case '"':
		text, ok := unescapeString(body)
		return ok && string(text) == value
	case 't', 'f':
		return string(body) == value
	}
	sent, ok := canonicalNumber([]byte(value))
	meant, valid := canonicalNumber(body)
	return ok && valid && bytes.Equal(sent, meant)
}
