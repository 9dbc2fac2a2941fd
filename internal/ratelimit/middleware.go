package ratelimit

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Middleware returns a middleware that holds clients to the limits. A call above the rate waits up
// to 10 seconds. It refuses what exceeds the limits: a tool call with a result that a model
// understands, everything else with an error. A client is a principal, else a session; clients with
// neither count as one.
func Middleware(o Options) mcp.Middleware {
	l := New(o)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			wait, done, refusal := l.Start(clientOf(req), isCall(req.Method))
			if refusal != "" {
				return refuseRequest(req, refusal)
			}
			defer done()
			if wait > 0 {
				if err := timeout.Sleep(ctx, wait); err != nil {
					return nil, err
				}
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

// clientOf returns the name of the client of a request.
func clientOf(req *mcp.Request) string {
	if req.Principal.ID != "" {
		return req.Principal.ID
	}
	session := ""
	if ids := req.Header[mcpwire.HeaderSessionID]; len(ids) > 0 && !req.Revision.Modern() {
		session = ids[0]
	}
	return "session " + session
}

// isCall reports whether requests of a method count for the rate.
func isCall(method string) bool {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource, mcp.MethodComplete:
		return true
	}
	return false
}

// refuseRequest returns a tool result with the refusal, or an error for other methods.
func refuseRequest(req *mcp.Request, refusal string) (*mcp.Result, error) {
	if req.Method == mcp.MethodCallTool {
		return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(refusal)}, IsError: true}}, nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", refusal)
}
