package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Error is a protocol error. A handler that returns one sends it with its code. Any other error of
// a tool's handler becomes a tool error that the model reads.
type Error = jsonrpc.Error

// Error codes in addition to JSON-RPC's (basic/index: Error Codes).
const (
	CodeHeaderMismatch             = -32020
	CodeMissingCapability          = -32021
	CodeUnsupportedProtocolVersion = -32022

	// CodeResourceNotFound comes from legacy servers. Modern ones send an
	// error of [ResourceNotFound].
	CodeResourceNotFound = -32002
)

// Errorf returns a protocol error with a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidParams returns the protocol error for invalid parameters.
func InvalidParams(format string, args ...any) *Error {
	return Errorf(jsonrpc.CodeInvalidParams, format, args...)
}

// MethodNotFound returns the protocol error for an unknown method.
func MethodNotFound(method string) *Error {
	return Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
}

// ResourceNotFound returns the protocol error for an unknown resource. The URI is its data.
func ResourceNotFound(uri string) *Error {
	e := InvalidParams("resource not found: %s", uri)
	e.Data, _ = json.Marshal(map[string]string{"uri": uri})
	return e
}

// CapabilityError reports that the client lacks a capability that a request needs. If a handler
// returns it, a modern client gets the protocol error -32021, and a legacy client gets a tool error
// that a model can read.
type CapabilityError struct {
	Required ClientCapabilities
}

func (e *CapabilityError) Error() string {
	return "the client does not support " + strings.Join(e.Required.describeCapabilities(), " and ")
}

// describeCapabilities returns the capabilities in words for people.
func (c ClientCapabilities) describeCapabilities() (words []string) {
	if e := c.Elicitation; e != nil {
		if e.Form != nil || e.URL == nil {
			words = append(words, "questions to the user (elicitation)")
		}
		if e.URL != nil {
			words = append(words, "pages that the user should open (elicitation of URLs)")
		}
	}
	if s := c.Sampling; s != nil {
		text := "requests to its model (sampling"
		if s.Tools != nil {
			text += " with tools"
		}
		if s.Context != nil {
			text += " with context"
		}
		words = append(words, text+")")
	}
	if c.Roots != nil {
		words = append(words, "questions for its folders (roots)")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Extensions)) {
		words = append(words, "the extension "+name)
	}
	if words == nil {
		words = append(words, "something that this request needs")
	}
	return words
}
