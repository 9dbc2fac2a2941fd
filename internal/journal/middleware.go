package journal

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// call is a recorded request that a handler serves. Requests to servers with the context of the
// handler belong to the same operation.
type call struct {
	conn *Conn
	id   jsonrpc.ID

	op *operation // guarded by Recorder.keeperMu
}

// callContext is the context of a call's handler. The journal keeps calls longer than their
// handlers run, and must not keep the context: it holds the request and its answer in memory.
type callContext struct {
	context.Context
	call *call
}

// callKey is the context key of the *call.
type callKey struct{}

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// Middleware joins the requests of clients with the requests to servers that they cause. It must be
// the outermost handler that a recorded connection serves.
func (r *Recorder) Middleware() mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			conn, ok := framesink.Serving(ctx).(*Conn)
			peer, known := req.Peer.(mcpwire.Identified)
			if !ok || !known || conn.recorder != r {
				return next.ServeMCP(ctx, req)
			}
			c := &call{conn: conn, id: peer.RequestID()}
			r.put(entry{kind: callEntry, conn: conn, id: c.id, call: c, principal: req.Principal.ID}, req.ClientInfo)
			res, err := next.ServeMCP(&callContext{ctx, c}, req)
			if ctx.Err() != nil {
				r.put(entry{kind: returnEntry, conn: conn, id: c.id, call: c}, nil)
			}
			return res, err
		})
	}
}
