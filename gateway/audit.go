package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Record is a line of the audit log: a request of a client for something that an upstream does.
type Record struct {
	Time time.Time `json:"time"`
	// Client is who asked: the principal, else the session, else how the client names itself.
	Client string `json:"client,omitzero"`
	Method string `json:"method"`
	// Server is the upstream, and Name the tool, prompt or URI there.
	Server string `json:"server,omitzero"`
	Name   string `json:"name,omitzero"`
	// Outcome is ok, tool error, input required, error or cancelled, and Error says more of the last two.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitzero"`
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
	// Failed is told where the log cannot be written; once in a row. nil: nobody.
	Failed func(error)
}

// Audit returns a middleware that writes a line of JSON ([Record]) to w for each call of a tool, use of a prompt and reading of
// a resource. Lines are written one at a time.
func Audit(g *Gateway, w io.Writer, o AuditOptions) mcp.Middleware {
	log := &auditLog{w: w, opts: o}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if !mcp.MayAsk(req.Method) {
				return next.ServeMCP(ctx, req)
			}
			began := time.Now()
			res, err := next.ServeMCP(ctx, req)
			log.write(g.record(ctx, req, res, err, began, o))
			return res, err
		})
	}
}

func (g *Gateway) record(ctx context.Context, req *mcp.Request, res *mcp.Result, err error, began time.Time, o AuditOptions) Record {
	mask := o.Mask
	if mask == nil {
		mask = func(text string) string { return text }
	}
	r := Record{
		Time: began, Client: clientOf(req), Method: req.Method, Milliseconds: float64(time.Since(began).Microseconds()) / 1000,
		Sent: len(req.Params),
	}
	r.Server, r.Name = g.about(req)
	if o.Arguments {
		if masked := []byte(mask(string(rawjson.Lookup(req.Params, "arguments")))); rawjson.CheckAll(masked) == nil {
			r.Arguments = masked
		}
	}
	switch {
	case ctx.Err() != nil:
		r.Outcome, r.Error = "cancelled", context.Cause(ctx).Error()
	case err != nil:
		r.Outcome, r.Error = "error", mask(err.Error())
	default:
		r.Outcome, r.Received = verdict(res)
	}
	return r
}

// verdict says how a result is, and how large.
func verdict(res *mcp.Result) (outcome string, size int) {
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

// about returns the upstream that a request is for, and what it is about there.
func (g *Gateway) about(req *mcp.Request) (server, name string) {
	c := g.hub.Catalog()
	if uri, ok := rawjson.String(rawjson.Lookup(req.Params, "uri")); ok {
		if u, own := g.view.resource(c, uri); u != nil {
			return u.Name(), own
		}
		return "", uri
	}
	name, _ = rawjson.String(rawjson.Lookup(req.Params, "name"))
	for _, k := range listed[req.Method] {
		if item := g.view.find(c, k, name); item != nil {
			return item.Upstream.Name(), item.Name
		}
	}
	return "", name
}

// clientOf names who asked.
func clientOf(req *mcp.Request) string {
	if req.Principal.ID != "" {
		return req.Principal.ID
	}
	name, _ := rawjson.String(rawjson.Lookup(req.ClientInfo, "name"))
	return name
}

// auditLog writes records.
type auditLog struct {
	w    io.Writer
	opts AuditOptions

	mu     sync.Mutex
	failed bool
}

func (l *auditLog) write(r Record) {
	line, err := json.Marshal(r)
	if err != nil {
		err = errors.Join(errors.New("a record cannot be encoded"), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.w.Write(append(line, '\n'))
	}
	if err != nil && !l.failed && l.opts.Failed != nil {
		l.opts.Failed(err)
	}
	l.failed = err != nil
}
