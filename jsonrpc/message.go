// Package jsonrpc reads and writes JSON-RPC 2.0 messages (https://www.jsonrpc.org/specification) as MCP uses them:
// params and results are objects, ids are strings or numbers, never null. It knows nothing of MCP's methods.
//
// A message is scanned once, by hand; params, results and error data stay raw and alias the frame they came in.
package jsonrpc

import (
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Message is a request (ID and Method), a notification (Method alone) or a response (Result or Error, with the ID of
// its request unless that could not be read). Raw fields alias the parsed frame.
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

// Parser reads frames. The zero Parser is ready; it is safe for concurrent use.
type Parser struct {
	// Methods maps names to themselves, so that a known method costs no allocation. It must not change.
	Methods map[string]string
}

// Parse reads one frame. The error is always an [*Error]: [CodeParse] for what is no JSON, [CodeInvalidRequest] for JSON
// that is no message (a batch included, see [IsBatch]) or is nested too deeply. Then m.ID is the id, where one could be
// read; for a syntax error, where one could be guessed.
func (p Parser) Parse(frame []byte) (m Message, err error) {
	var e envelope
	switch err := rawjson.CheckObject(frame, e.member); {
	case errors.Is(err, rawjson.ErrNoObject):
		return m, &Error{Code: CodeInvalidRequest, Message: "a message must be a JSON object"}
	case err != nil:
		m.ID = e.guess(frame)
		if errors.Is(err, rawjson.ErrDepth) { // it is JSON, and more than can be asked of a reader
			return m, &Error{Code: CodeInvalidRequest, Message: err.Error()}
		}
		return m, &Error{Code: CodeParse, Message: err.Error()}
	}
	if err := e.check(); err != nil {
		if id, idErr := ParseID(e.id); idErr == nil {
			m.ID = id
		}
		return m, err
	}
	return e.message(p.Methods)
}

// envelope holds the raw members of a message; nil where a member is absent.
type envelope struct {
	jsonrpc, id, method, params, result, err []byte

	twice string // a member that is there twice
}

func (e *envelope) member(key, value []byte) {
	field := e.field(key)
	switch {
	case field == nil:
	case *field != nil:
		e.twice = string(key)
	default:
		*field = value
	}
}

// guess returns the id of a frame that is no JSON, as far as it was read or can be made out.
func (e *envelope) guess(frame []byte) ID {
	const ends = 256 // bytes at either end that are looked at
	if id, err := ParseID(e.id); err == nil {
		return id
	}
	return GuessID(frame[:min(ends, len(frame))], frame[max(0, len(frame)-ends):])
}

func (e *envelope) check() error {
	if e.twice != "" {
		return Errorf(CodeInvalidRequest, "the message has two members %q", e.twice)
	}
	if string(e.jsonrpc) != `"2.0"` {
		return &Error{Code: CodeInvalidRequest, Message: `jsonrpc must be "2.0"`}
	}
	return nil
}

func (e *envelope) field(key []byte) *[]byte {
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

func (e *envelope) message(methods map[string]string) (m Message, err error) {
	if e.id != nil && !(e.err != nil && rawjson.IsNull(e.id)) { // JSON-RPC's null id of an error response is an absent one
		if m.ID, err = ParseID(e.id); err != nil {
			return m, err
		}
	}
	if e.method != nil {
		return e.call(m, methods)
	}
	return e.response(m)
}

func (e *envelope) call(m Message, methods map[string]string) (Message, error) {
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

func (e *envelope) response(m Message) (Message, error) {
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

// IsBatch reports whether the frame holds a JSON array.
func IsBatch(frame []byte) bool {
	pos := rawjson.Space(frame, 0)
	return pos < len(frame) && frame[pos] == '['
}

// ErrEmptyBatch is the error for a batch without messages.
var ErrEmptyBatch = errors.New("the batch is empty")

// Batch splits a batch into its messages, of which there may be at most most. A syntax error is an [*Error] with
// [CodeParse], any other has [CodeInvalidRequest].
func Batch(frame []byte, most int) (messages []json.RawMessage, err error) {
	if err := rawjson.CheckAll(frame); err != nil {
		return nil, &Error{Code: CodeParse, Message: err.Error()}
	}
	for it := rawjson.Array(frame); it.Next(); {
		if len(messages) == most {
			return nil, Errorf(CodeInvalidRequest, "the batch holds more than %d messages", most)
		}
		messages = append(messages, it.Value)
	}
	if len(messages) == 0 {
		return nil, &Error{Code: CodeInvalidRequest, Message: ErrEmptyBatch.Error()}
	}
	return messages, nil
}
