// Package audit writes the audit log: one line of JSON for each request and each decision. Package
// gateway writes the requests, the program's agent its decisions, to the same file.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Record is a line of the audit log: a client's request for something that an upstream does, or an
// agent's decision on a call.
type Record struct {
	// Time is when the request came or the decision was made.
	Time time.Time `json:"time"`
	// Client is the principal of the request, else the name that the client gives itself.
	Client string `json:"client,omitzero"`
	// Replica is the replica that has written the line, if it is another one.
	Replica string `json:"replica,omitzero"`
	// Method is the method of the request, or of the user's action: servers/enable, disable,
	// restart, login, trust or logout, definitions/accept, config/save or import. No user makes
	// definitions/change and config/change.
	Method string `json:"method"`
	// Server is the upstream. Name is the upstream's tool, prompt or URI.
	Server string `json:"server,omitzero"`
	Name   string `json:"name,omitzero"`
	// Outcome of a request is "ok", "tool error", "input required", "error" or "cancelled"; of a
	// decision, "allowed" or "refused"; of a question, "accept", "decline", "cancel", "answered" or
	// "unanswered". Error has the text of an error or a cancellation.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitzero"`
	// By is the source of a decision: "mode", "annotation", "session", "always" or "user"; of an
	// answer, "client" or "console". Reason says it in words. It has the text of a question.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Milliseconds is the duration. Sent and Received are the sizes of params and result in bytes.
	Milliseconds float64 `json:"ms"`
	Sent         int     `json:"sent"`
	Received     int     `json:"received"`
	// Arguments are included only with [Options].Arguments.
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// Target is the upstream that gets a request, and the upstream's tool, prompt or URI.
type Target struct{ Server, Name string }

// targetKey is the context key of the *Target of a request.
type targetKey struct{}

// WithTarget returns a context in which the gateway sets t when an upstream gets the request.
func WithTarget(ctx context.Context, t *Target) context.Context {
	return context.WithValue(ctx, targetKey{}, t)
}

// recordKey is the context key of the *Record of a request.
type recordKey struct{}

// WithRecord returns a context in which r gets the upstream and the item of its request.
func WithRecord(ctx context.Context, r *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// SetTarget sets the target of the context and of its record, if it has them.
func SetTarget(ctx context.Context, t Target) {
	if to, ok := ctx.Value(targetKey{}).(*Target); ok {
		*to = t
	}
	if r, ok := ctx.Value(recordKey{}).(*Record); ok {
		r.Server, r.Name = t.Server, t.Name
	}
}

// SetTool names the tool of a task in the record of the context, if it has one. It changes nothing
// if the record names an upstream, since the gateway has named the tool then.
func SetTool(ctx context.Context, tool string) {
	if r, ok := ctx.Value(recordKey{}).(*Record); ok && r.Server == "" {
		r.Name = tool
	}
}

// Options configure a [Log]. The zero value is ready for use. gateway.AuditOptions has the same
// fields.
type Options struct {
	// Arguments makes records include arguments, which may hold secrets.
	Arguments bool
	// Mask replaces secrets in errors, reasons and arguments. nil replaces nothing.
	Mask func(string) string
	// OnError is called when writing fails, once until a write succeeds again. nil ignores
	// failures.
	OnError func(error)
}

// Log writes records. It is safe for concurrent use.
type Log struct {
	w    io.Writer
	opts Options

	mu     sync.Mutex
	failed bool
}

// NewLog returns a log. Each record is one Write to w, so several processes can append to the same
// file.
func NewLog(w io.Writer, o Options) *Log { return &Log{w: w, opts: o} }

// Write writes a record. It drops the arguments unless the options include them, and masks secrets.
// Arguments that are not JSON after masking are left out.
func (l *Log) Write(r Record) {
	r.Arguments = l.maskArguments(r.Arguments)
	r.Error, r.Reason = l.maskText(r.Error), l.maskText(r.Reason)
	line, err := json.Marshal(r)
	if err != nil {
		err = errors.Join(errors.New("a record cannot be encoded"), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.w.Write(append(line, '\n'))
	}
	if err != nil && !l.failed && l.opts.OnError != nil {
		l.opts.OnError(err)
	}
	l.failed = err != nil
}

// maskArguments returns the arguments to record, or nil.
func (l *Log) maskArguments(raw json.RawMessage) json.RawMessage {
	if !l.opts.Arguments {
		return nil
	}
	if masked := []byte(l.maskText(string(raw))); rawjson.CheckAll(masked) == nil {
		return masked
	}
	return nil
}

// maskText applies Mask.
func (l *Log) maskText(text string) string {
	if l.opts.Mask == nil {
		return text
	}
	return l.opts.Mask(text)
}
