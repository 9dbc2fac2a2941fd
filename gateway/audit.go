package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Record is a line of the audit log: a request of a client for something that an upstream does, or the decision of an agent
// whether to make one.
type Record struct {
	Time time.Time `json:"time"`
	// Client is who asked: the principal, else the session, else how the client names itself.
	Client string `json:"client,omitzero"`
	Method string `json:"method"`
	// Server is the upstream, and Name the tool, prompt or URI there.
	Server string `json:"server,omitzero"`
	Name   string `json:"name,omitzero"`
	// Outcome is ok, tool error, input required, error or cancelled, and Error says more of the last two; of a decision it is
	// allowed or refused.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitzero"`
	// By is what a decision comes from (mode, annotation, session, always, user), and Reason the same in words.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Milliseconds is how long it took; Sent and Received are bytes of params and result.
	Milliseconds float64         `json:"ms"`
	Sent         int             `json:"sent"`
	Received     int             `json:"received"`
	Arguments    json.RawMessage `json:"arguments,omitzero"`
}

// AuditOptions configure an audit log.
type AuditOptions struct {
	// Arguments are recorded only where this says so: they may hold secrets.
	Arguments bool
	// Mask hides secrets in errors and arguments; nil hides nothing.
	Mask func(string) string
	// OnError is told where the log cannot be written; once in a row. nil: nobody.
	OnError func(error)
}

// Audit returns a middleware that writes a line of JSON ([Record]) to w for each call of a tool, use of a prompt and reading of
// a resource. Lines are written one at a time.
func Audit(w io.Writer, o AuditOptions) mcp.Middleware {
	log := NewAuditLog(w, o)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if !mcp.MayAsk(req.Method) {
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

type auditKey struct{}

// noteUpstream tells the audit log of a request which upstream gets it, with which params.
func noteUpstream(ctx context.Context, u *hub.Upstream, params json.RawMessage) {
	r, ok := ctx.Value(auditKey{}).(*Record)
	if !ok {
		return
	}
	r.Server = u.Name()
	r.Name = nameOf(params)
}

// nameOf returns the tool, prompt or URI of a request's params.
func nameOf(params json.RawMessage) string {
	for _, member := range []string{"name", "uri"} {
		if name, ok := rawjson.String(rawjson.Lookup(params, member)); ok {
			return name
		}
	}
	return ""
}

// setRequest adds what was asked for: where no upstream got it, under the name that the client used.
func (r *Record) setRequest(req *mcp.Request, o AuditOptions) {
	if r.Server == "" {
		r.Name = nameOf(req.Params)
	}
	r.Arguments = o.auditedArguments(rawjson.Lookup(req.Params, "arguments"))
}

// auditedArguments are those that are recorded, if any.
func (o *AuditOptions) auditedArguments(raw json.RawMessage) json.RawMessage {
	if !o.Arguments {
		return nil
	}
	if masked := []byte(o.maskText(string(raw))); rawjson.CheckAll(masked) == nil {
		return masked
	}
	return nil
}

// setOutcome adds what the request has come to.
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

func (o *AuditOptions) maskText(text string) string {
	if o.Mask == nil {
		return text
	}
	return o.Mask(text)
}

// resultOutcome says how a result is, and how large.
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

// clientOf names who asked.
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

// NewAuditLog returns the log that [Audit] writes, for records of others beside those. Each is one write to w, so that several
// processes can have the same file open for appending.
func NewAuditLog(w io.Writer, o AuditOptions) *AuditLog { return &AuditLog{w: w, opts: o} }

// Write writes a record: its arguments as the options have it, and nothing in it that is to be masked.
func (l *AuditLog) Write(r Record) {
	r.Arguments = l.opts.auditedArguments(r.Arguments)
	r.Error, r.Reason = l.opts.maskText(r.Error), l.opts.maskText(r.Reason)
	l.writeLine(r)
}

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
