// Package jsonrpc parses and writes JSON-RPC 2.0 messages (https://www.jsonrpc.org/specification)
// in MCP's dialect: params and results are objects, and ids are strings or numbers, never null. It
// does not know MCP's methods.
//
//	m, err := jsonrpc.Parse(frame, nil)
//	if err == nil && m.IsRequest() {
//		reply := jsonrpc.AppendResult(nil, m.ID, answer(m.Method, m.Params))
//		…
//	}
//
// Parse scans a frame once and does not decode params, results and error data: they stay raw
// JSON and alias the frame. The Append functions write messages without intermediate values. Both
// are used by transports, which handle every message; programs rarely need this package.
package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Message is a request (ID and Method), a notification (Method only) or a response (Result or
// Error, with the ID of its request unless that could not be read). The raw fields alias the parsed
// frame.
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage // nil or an object
	Result json.RawMessage // an object
	Error  *Error
}

// IsRequest reports whether m expects a response.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// IsNotification reports whether m is a one-way message.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse reports whether m answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Parse parses one frame. methods maps names to themselves, so that a method among them is not
// allocated; nil is valid.
//
// The error is always an [*Error]. Its code is [CodeParse] if the frame is not JSON, and
// [CodeInvalidRequest] if it is JSON but not a message (for example a batch), or nested too deeply.
// With an error, m.ID is the message's id if that could be read or, after a syntax error, guessed.
func Parse(frame []byte, methods map[string]string) (m Message, err error) {
	var e envelope
	switch err := rawjson.CheckObject(frame, e.setMember); {
	case errors.Is(err, rawjson.ErrNoObject):
		return m, &Error{Code: CodeInvalidRequest, Message: "a message must be a JSON object"}
	case err != nil:
		m.ID = e.guessID(frame)
		if errors.Is(err, rawjson.ErrDepth) { // valid JSON as far as it was read
			return m, &Error{Code: CodeInvalidRequest, Message: err.Error()}
		}
		return m, &Error{Code: CodeParse, Message: err.Error()}
	}
	if err := e.checkMembers(); err != nil {
		if id, idErr := ParseID(e.id); idErr == nil {
			m.ID = id
		}
		return m, err
	}
	return e.newMessage(methods)
}

// envelope holds the raw members of a message; nil if absent.
type envelope struct {
	jsonrpc, id, method, params, result, err []byte

	duplicate string // the name of a member that occurs twice
}

func (e *envelope) setMember(key, value []byte) {
	field := e.fieldOf(key)
	switch {
	case field == nil:
	case *field != nil:
		e.duplicate = string(key)
	default:
		*field = value
	}
}

// guessID returns the id of a frame with a syntax error, if it was already read or can be guessed.
func (e *envelope) guessID(frame []byte) ID {
	const ends = 256 // bytes to search at either end
	if id, err := ParseID(e.id); err == nil {
		return id
	}
	id, _ := ParseID(rawjson.GuessID(frame[:min(ends, len(frame))], frame[max(0, len(frame)-ends):])) // an error gives the zero ID
	return id
}

func (e *envelope) checkMembers() error {
	if e.duplicate != "" {
		return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("the message has two members %q", e.duplicate)}
	}
	if string(e.jsonrpc) != `"2.0"` {
		return &Error{Code: CodeInvalidRequest, Message: `jsonrpc must be "2.0"`}
	}
	return nil
}

func (e *envelope) fieldOf(key []byte) *[]byte {
	switch string(key) {
	case "jsonrpc":
		return &e.jsonrpc
	case "id":
		return &e.id
	case "method":
		return &e.method
	case "params":
		return &e.params
	case "result":
		return &e.result
	case "error":
		return &e.err
	}
	return nil
}

func (e *envelope) newMessage(methods map[string]string) (m Message, err error) {
	if e.id != nil && !(e.err != nil && rawjson.IsNull(e.id)) { // JSON-RPC uses null in error responses for an unknown id
		if m.ID, err = ParseID(e.id); err != nil {
			return m, err
		}
	}
	if e.method != nil {
		return e.newCall(m, methods)
	}
	return e.newResponse(m)
}

func (e *envelope) newCall(m Message, methods map[string]string) (Message, error) {
	if e.result != nil || e.err != nil {
		return m, &Error{Code: CodeInvalidRequest, Message: "a message has either a method or a result or an error"}
	}
	if len(e.method) > 2 && e.method[0] == '"' {
		if known, ok := methods[string(e.method[1:len(e.method)-1])]; ok {
			m.Method = known
		}
	}
	if m.Method == "" {
		m.Method, _ = rawjson.String(e.method)
	}
	if m.Method == "" {
		return m, &Error{Code: CodeInvalidRequest, Message: "method must be a non-empty string"}
	}
	if e.params != nil && !rawjson.IsObject(e.params) {
		m.Method = ""
		return m, &Error{Code: CodeInvalidRequest, Message: "params must be an object"}
	}
	m.Params = e.params
	return m, nil
}

func (e *envelope) newResponse(m Message) (Message, error) {
	switch {
	case e.result != nil && e.err != nil:
		return m, &Error{Code: CodeInvalidRequest, Message: "a response has either a result or an error"}
	case e.err != nil:
		if m.Error = parseError(e.err); m.Error == nil {
			return m, &Error{Code: CodeInvalidRequest, Message: "error must have an integer code and a message"}
		}
	case e.result == nil:
		return m, &Error{Code: CodeInvalidRequest, Message: "a message has a method, a result or an error"}
	case !rawjson.IsObject(e.result):
		return m, &Error{Code: CodeInvalidRequest, Message: "result must be an object"}
	case m.ID.IsZero():
		return m, &Error{Code: CodeInvalidRequest, Message: "a result needs an id"}
	}
	m.Result = e.result
	return m, nil
}

func parseError(raw []byte) *Error {
	if !rawjson.IsObject(raw) {
		return nil
	}
	var e Error
	hasCode := false
	for it := rawjson.Object(raw); it.Next(); {
		switch string(it.Key) {
		case "code":
			n, ok := parseInt(it.Value)
			e.Code, hasCode = int(n), ok
		case "message":
			e.Message, _ = rawjson.String(it.Value)
		case "data":
			e.Data = it.Value
		}
	}
	if !hasCode {
		return nil
	}
	return &e
}
