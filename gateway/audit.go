package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Record is a line of the audit log: a client's request for something that an upstream does, or an
// agent's decision on a call.
type Record struct {
	// Time is when the request came or the decision was made.
	Time time.Time `json:"time"`
	// Client is the principal of the request, else the name that the client gives itself.
	Client string `json:"client,omitzero"`
	// Method is the method of the request.
	Method string `json:"method"`
	// Server is the upstream. Name is the upstream's tool, prompt or URI.
	Server string `json:"server,omitzero"`
	Name   string `json:"name,omitzero"`
	// Outcome of a request is "ok", "tool error", "input required", "error" or "cancelled"; of a
	// decision, "allowed" or "refused". Error has the text of an error or a cancellation.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitzero"`
	// By is the source of a decision: "mode", "annotation", "session", "always" or "user". Reason
	// says it in words.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Milliseconds is the duration. Sent and Received are the sizes of params and result in bytes.
	Milliseconds float64 `json:"ms"`
	Sent         int     `json:"sent"`
	Received     int     `json:"received"`
	// Arguments are included only with [AuditOptions].Arguments.
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// AuditOptions configure an audit log. The zero value is ready for use.
type AuditOptions struct {
	// Arguments makes records include arguments, which may hold secrets.
	Arguments bool
	// Mask replaces secrets in errors and arguments. nil replaces nothing.
	Mask func(string) string
	// OnError is called when writing fails, once until a write succeeds again. nil ignores
	// failures.
	OnError func(error)
}

// Audit returns a middleware that writes a line of JSON, a [Record], to w for each call of a tool,
// use of a prompt and read of a resource. Each record is one Write, and writes do not overlap.
func Audit(w io.Writer, o AuditOptions) mcp.Middleware {
	log := NewAuditLog(w, o)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if !mcpwire.MayAsk(req.Method) {
				return next.ServeMCP(ctx, req)
			}
			r := &Record{Time: time.Now(), Client: clientOf(req), Method: req.Method, Sent: len(req.Params)}
			res, err := next.ServeMCP(context.WithValue(ctx, auditKey{}, r), req)
			r.setRequest(req, o)
			r.setOutcome(ctx, res, err, o)
			log.writeLine(*r)
			return res, err
		})
	}
}

// auditKey is the context key of the *Record of a request.
type auditKey struct{}

// noteUpstream records which upstream gets a request, and with which params.
func noteUpstream(ctx context.Context, u *hub.Upstream, params json.RawMessage) {
	r, ok := ctx.Value(auditKey{}).(*Record)
	if !ok {
		return
	}
	r.Server = u.Name()
	r.Name = nameOf(params)
}

// nameOf returns the tool, prompt or URI in a request's params, or "".
func nameOf(params json.RawMessage) string {
	for _, member := range []string{"name", "uri"} {
		if name, ok := rawjson.String(rawjson.Lookup(params, member)); ok {
			return name
		}
	}
	return ""
}

// setRequest records the request. If no upstream got it, Name is the client's name of the item.
func (r *Record) setRequest(req *mcp.Request, o AuditOptions) {
	if r.Server == "" {
		r.Name = nameOf(req.Params)
	}
	r.Arguments = o.auditedArguments(rawjson.Lookup(req.Params, "arguments"))
}

// auditedArguments returns the arguments to record, or nil. Arguments that are no JSON after
// masking are left out.
func (o *AuditOptions) auditedArguments(raw json.RawMessage) json.RawMessage {
	if !o.Arguments {
		return nil
	}
	if masked := []byte(o.maskText(string(raw))); rawjson.CheckAll(masked) == nil {
		return masked
	}
	return nil
}

// setOutcome records the result or the error.
func (r *Record) setOutcome(ctx context.Context, res *mcp.Result, err error, o AuditOptions) {
	r.Milliseconds = float64(time.Since(r.Time).Microseconds()) / 1000
	switch {
	case ctx.Err() != nil:
		r.Outcome, r.Error = "cancelled", context.Cause(ctx).Error()
	case err != nil:
		r.Outcome, r.Error = "error", o.maskText(err.Error())
	default:
		r.Outcome, r.Received = resultOutcome(res)
	}
}

// maskText applies Mask.
func (o *AuditOptions) maskText(text string) string {
	if o.Mask == nil {
		return text
	}
	return o.Mask(text)
}

// resultOutcome returns the outcome of a result, and its size in bytes.
func resultOutcome(res *mcp.Result) (outcome string, size int) {
	raw := res.Raw
	if raw == nil {
		raw, _ = mcp.Encode(res.Value) // the edge reports what cannot be encoded
	}
	switch {
	case res.Type == mcp.ResultInputRequired:
		return "input required", len(raw)
	case string(rawjson.Lookup(raw, "isError")) == "true":
		return "tool error", len(raw)
	}
	return "ok", len(raw)
}

// clientOf returns the name of a request's client for a record.
func clientOf(req *mcp.Request) string {
	if req.Principal.ID != "" {
		return req.Principal.ID
	}
	name, _ := rawjson.String(rawjson.Lookup(req.ClientInfo, "name"))
	return name
}

// AuditLog writes records. It is safe for concurrent use.
type AuditLog struct {
	w    io.Writer
	opts AuditOptions

	mu     sync.Mutex
	failed bool
}

// NewAuditLog returns a log in the format of [Audit], for records of other origin. Each record is
// one Write to w, so several processes can append to the same file.
func NewAuditLog(w io.Writer, o AuditOptions) *AuditLog { return &AuditLog{w: w, opts: o} }

// Write writes a record. It drops the arguments unless the options include them, and masks secrets.
func (l *AuditLog) Write(r Record) {
	r.Arguments = l.opts.auditedArguments(r.Arguments)
	r.Error, r.Reason = l.opts.maskText(r.Error), l.opts.maskText(r.Reason)
	l.writeLine(r)
}

// writeLine writes a record as it is.
func (l *AuditLog) writeLine(r Record) {
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
