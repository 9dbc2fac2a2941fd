package gateway

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// AuditOptions configure [Audit]. The zero value is ready for use.
type AuditOptions struct {
	// Arguments makes records include arguments, which may hold secrets.
	Arguments bool
	// Mask replaces secrets in errors and arguments. nil replaces nothing.
	Mask func(string) string
	// OnError is called when writing fails, once until a write succeeds again. nil ignores
	// failures.
	OnError func(error)
}

// Audit returns a middleware that writes a line of JSON to w for each call of a tool, use of a
// prompt, read of a resource, and answer to or cancellation of a task. A tasks/get is recorded if
// it shows the end of the task or fails. Each line is one Write, and writes do not overlap. Its
// members are:
//
//	time       when the request came
//	client     the principal of the request, else the name that the client gives itself
//	method     the method of the request
//	server     the upstream; left out if no upstream got the request
//	name       the upstream's tool, prompt or URI; the tool of a task
//	outcome    "ok", "tool error", "input required", "task", "error" or "cancelled"
//	error      the text of an error or a cancellation
//	ms         the duration in milliseconds
//	sent       the size of the params in bytes
//	received   the size of the result in bytes
//	arguments  the arguments, if the options include them
func Audit(w io.Writer, o AuditOptions) mcp.Middleware {
	log := audit.NewLog(w, audit.Options(o))
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if !isAudited(req.Method) {
				return next.ServeMCP(ctx, req)
			}
			r := &audit.Record{Time: time.Now(), Client: clientOf(req), Method: req.Method, Sent: len(req.Params)}
			res, err := next.ServeMCP(audit.WithRecord(ctx, r), req)
			if req.Method == mcpwire.MethodGetTask && err == nil && !showsEnd(res) {
				return res, nil
			}
			if r.Server == "" && r.Name == "" { // no upstream got it, so Name is the client's name of the item
				r.Name = nameOf(req.Params)
			}
			r.Arguments = rawjson.Lookup(req.Params, "arguments")
			recordOutcome(ctx, r, res, err)
			log.Write(*r)
			return res, err
		})
	}
}

// isAudited reports whether requests of a method are recorded.
func isAudited(method string) bool {
	switch method {
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		return true
	}
	return mcpwire.MayAsk(method)
}

// showsEnd reports whether the result of tasks/get shows the end of the task.
func showsEnd(res *mcp.Result) bool {
	raw, err := mcpwire.EncodeResult(res)
	return err == nil && hasEnded(raw)
}

// noteUpstream records which upstream gets a request, and with which params.
func noteUpstream(ctx context.Context, u *hub.Upstream, params json.RawMessage) {
	audit.SetTarget(ctx, audit.Target{Server: u.Name(), Name: nameOf(params)})
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

// recordOutcome records the result or the error.
func recordOutcome(ctx context.Context, r *audit.Record, res *mcp.Result, err error) {
	r.Milliseconds = float64(time.Since(r.Time).Microseconds()) / 1000
	switch {
	case ctx.Err() != nil:
		r.Outcome, r.Error = "cancelled", context.Cause(ctx).Error()
	case err != nil:
		r.Outcome, r.Error = "error", err.Error()
	case r.Method == mcpwire.MethodGetTask:
		recordTask(r, res)
	default:
		r.Outcome, r.Received = resultOutcome(res)
	}
}

// recordTask records the end of a task as the outcome of the call that it was.
func recordTask(r *audit.Record, res *mcp.Result) {
	raw, _ := mcpwire.EncodeResult(res) // the edge reports what cannot be encoded
	switch r.Received = len(raw); {
	case rawjson.Is(rawjson.Lookup(raw, "status"), mcpwire.TaskCancelled):
		r.Outcome = "cancelled"
	case rawjson.Is(rawjson.Lookup(raw, "status"), mcpwire.TaskFailed):
		r.Outcome = "error"
		r.Error, _ = rawjson.String(rawjson.Lookup(rawjson.Lookup(raw, "error"), "message"))
	default:
		r.Outcome, _ = resultOutcome(&mcp.Result{Raw: rawjson.Lookup(raw, "result")})
	}
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
	case res.Type == mcpwire.ResultTask:
		return "task", len(raw)
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
