package serving

import (
	"cmp"
	"context"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// edge is what all serving has in common, whatever carries the messages.
type edge struct {
	handler mcp.Handler
	opts    transport.ServerOptions // complete
	logger  *slog.Logger
	parser  jsonrpc.Parser
	modern  *modern
}

// Writer is where the messages of a call go, or those of a session that belong to no call.
type Writer interface {
	// Write sends a frame, which is the Writer's from then on. It may wait for room, and fails when nobody can read the
	// frame any more.
	Write(frame []byte) error
}

func newEdge(h mcp.Handler, opts transport.ServerOptions) *edge {
	e := &edge{handler: h, opts: opts, logger: opts.Logger, parser: jsonrpc.Parser{Methods: frames.MethodNames}}
	if e.logger == nil {
		e.logger = slog.Default()
	}
	if e.opts.Revisions == nil {
		e.opts.Revisions = mcp.Revisions()
	}
	if e.opts.Vocabulary == nil {
		e.opts.Vocabulary = vocabularyOf(h)
	}
	e.opts.MaxConcurrent = cmp.Or(opts.MaxConcurrent, transport.DefaultMaxConcurrent)
	e.opts.DrainTimeout = cmp.Or(opts.DrainTimeout, 2*time.Second)
	e.opts.AskTimeout = cmp.Or(opts.AskTimeout, 10*time.Minute)
	e.modern = &modern{revisions: e.opts.Revisions, log: e.logFailure}
	return e
}

// vocabularyOf returns what a handler says that it understands; the core alone if it does not say.
func vocabularyOf(h mcp.Handler) *mcp.Vocabulary {
	if own, ok := h.(mcp.Versed); ok {
		if v := own.Vocabulary(); v != nil {
			return v
		}
	}
	return mcp.NewVocabulary()
}

func (e *edge) logFailure(r *mcp.Request, err error) {
	e.logger.Error("a request failed", "method", r.Method, "err", err)
}

// notify passes a client's notification to a handler that takes them.
func (e *edge) notify(ctx context.Context, msg jsonrpc.Message) {
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
