package mcp

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Error is a protocol error: asked for by name, it reaches the peer with its code. Any other error of a tool's handler
// is a tool error that the model can read.
type Error = jsonrpc.Error

// Error codes beyond JSON-RPC's (basic/index: Error Codes).
const (
	CodeHeaderMismatch             = -32020
	CodeMissingCapability          = -32021
	CodeUnsupportedProtocolVersion = -32022

	// CodeResourceNotFound and CodeURLElicitationRequired are legacy codes: understood, and never sent on the modern wire.
	CodeResourceNotFound       = -32002
	CodeURLElicitationRequired = -32042
)

// Errorf returns a protocol error.
func Errorf(code int, format string, args ...any) *Error {
	return jsonrpc.Errorf(code, format, args...)
}

// InvalidParams returns the protocol error for parameters that cannot be used.
func InvalidParams(format string, args ...any) *Error {
	return Errorf(jsonrpc.CodeInvalidParams, format, args...)
}

// MethodNotFound returns the protocol error for a method that the receiver does not have.
func MethodNotFound(method string) *Error {
	return Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
}

// ResourceNotFound returns the protocol error for a URI that names no resource, with the URI as its data.
func ResourceNotFound(uri string) *Error {
	e := InvalidParams("resource not found: %s", uri)
	e.Data, _ = json.Marshal(map[string]string{"uri": uri})
	return e
}

// UnsupportedVersion returns the protocol error for a revision that the server does not speak.
func UnsupportedVersion(requested string, supported []Revision) *Error {
	e := Errorf(CodeUnsupportedProtocolVersion, "Unsupported protocol version")
	e.Data, _ = json.Marshal(UnsupportedVersionData{Supported: supported, Requested: requested})
	return e
}

// UnsupportedVersionData is the data of an unsupported version error.
type UnsupportedVersionData struct {
	Supported []Revision `json:"supported"`
	Requested string     `json:"requested"`
}

// CapabilityError says that a client lacks what a request needs. Returned by a handler it becomes the protocol error
// -32021 on the modern wire, and a tool error that a model can read on a legacy one.
type CapabilityError struct {
	Required ClientCapabilities
}

func (e *CapabilityError) Error() string {
	raw, _ := json.Marshal(e.Required)
	return "the client does not support what this request needs: " + string(raw)
}

// Protocol returns the error's form on the modern wire.
func (e *CapabilityError) Protocol() *Error {
	p := Errorf(CodeMissingCapability, "Missing required client capability")
	p.Data, _ = json.Marshal(struct {
		Required ClientCapabilities `json:"requiredCapabilities"`
	}{e.Required})
	return p
}
