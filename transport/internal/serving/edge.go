package serving

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// edge holds the handler, the complete options and the parts that serving needs, however messages
// are carried.
type edge struct {
	handler mcp.Handler
	opts    transport.ServerOptions // with defaults filled in
	logger  *slog.Logger
	modern  *modern
	tasks   bool // the handler knows the extension of tasks

	// idPrefix starts the ids of questions if other processes may ask in the same session, so that
	// an answer to a question of another process is not taken for one to a question of this
	// process. Otherwise it is empty.
	idPrefix string
}

// Writer writes the frames of a call, or the frames of a session that belong to no call.
type Writer interface {
	// Write writes frame and takes ownership of it. It may block until there is room, and returns
	// an error if the client can no longer receive the frame.
	Write(frame []byte) error
}

func newEdge(h mcp.Handler, opts transport.ServerOptions) *edge {
	e := &edge{handler: h, opts: opts, logger: opts.Logger}
	if e.logger == nil {
		e.logger = slog.Default()
	}
	if e.opts.Revisions == nil {
		e.opts.Revisions = mcp.Revisions()
	}
	if e.opts.Extensions == nil {
		e.opts.Extensions = extensionsOf(h)
	}
	e.tasks = mcpwire.DefinesTasks(e.opts.Extensions)
	e.opts.MaxConcurrent = cmp.Or(opts.MaxConcurrent, frames.DefaultMaxConcurrent)
	e.opts.Quota = quota.Or(opts.Quota)
	e.opts.DrainTimeout = cmp.Or(opts.DrainTimeout, 2*time.Second)
	e.opts.AskTimeout = cmp.Or(opts.AskTimeout, 10*time.Minute)
	e.modern = &modern{revisions: e.opts.Revisions, log: e.logFailure}
	return e
}

// extensionsOf returns the extensions that h lists, as [mcp.Handler] describes.
func extensionsOf(h mcp.Handler) []mcp.Extension {
	if own, ok := h.(interface{ Extensions() []mcp.Extension }); ok {
		return own.Extensions()
	}
	return nil
}

func (e *edge) logFailure(r *mcp.Request, err error) {
	e.logger.Error("a request failed", "method", r.Method, "err", err)
}

// passNotification passes a client's notification to the handler if that is an
// [mcp.NotificationHandler]. A panic of the handler is logged.
func (e *edge) passNotification(ctx context.Context, msg jsonrpc.Message) {
	h, ok := e.handler.(mcp.NotificationHandler)
	if !ok {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			e.logger.Error("the handler of a notification panicked", "method", msg.Method, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	h.NotifyMCP(ctx, mcp.Notification{Method: msg.Method, Params: msg.Params})
}
