package jsonrpc

import (
	"encoding/json"
	"fmt"
)

// The error codes of JSON-RPC 2.0.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is the error member of a response. A call returns it if the peer answers with an error.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // any JSON value, or nil
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }
