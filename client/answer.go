package client

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// answerLegacyQuestion answers what a legacy server asks while it handles a call. The calls that may wait for the answer do not
// get older meanwhile.
func (c *Client) answerLegacyQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	resume := c.clocks.pauseFor(ctx)
	defer resume()
	return c.answerQuestion(ctx, req)
}

// answerQuestion is the one place where questions of servers are answered, in either era. A panic becomes the answer's error.
func (c *Client) answerQuestion(ctx context.Context, req *mcp.Request) (res *mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.opts.Logger.Error("answering a server panicked", "server", c.serverName(), "method", req.Method, "panic", p,
				"stack", string(debug.Stack()))
			res, err = nil, fmt.Errorf("answering %s panicked: %v", req.Method, p)
		}
	}()
	switch {
	case req.Method == mcp.MethodElicit && c.opts.Answers.Elicit != nil:
		return answerTyped(req, func(p *mcp.ElicitParams) (any, error) { return c.askUser(ctx, p) })
	case req.Method == mcp.MethodCreateMessage && c.opts.Answers.Sample != nil:
		return answerTyped(req, func(p *mcp.CreateMessageParams) (any, error) { return c.sampleModel(ctx, p) })
	case req.Method == mcp.MethodListRoots && c.opts.Answers.Roots != nil:
		return answerTyped(req, func(*mcp.None) (any, error) { return c.listRoots(ctx) })
	}
	for _, h := range c.opts.Answers.Requests {
		if h.Method == req.Method {
			return h.Handle(ctx, req)
		}
	}
	if c.opts.Answers.Handler != nil {
		return c.opts.Answers.Handler.ServeMCP(ctx, req)
	}
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "this client does not answer %s", req.Method)
}

func answerTyped[P any](req *mcp.Request, f func(*P) (any, error)) (*mcp.Result, error) {
	var p P
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	value, err := f(&p)
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Value: value}, nil
}

// RequestHandler answers what servers ask with one method. Make a typed one with [OnRequest].
type RequestHandler struct {
	Method string
	// Handle is called concurrently. Its ctx ends when the call that led to the question does.
	Handle func(ctx context.Context, req *mcp.Request) (*mcp.Result, error)
}

// OnRequest returns a handler of one method that servers ask with, of an extension or agreed on with the server: live in the
// legacy era, as an input request in the modern one. The result must be an object. An [*mcp.Error] reaches the server with
// its code. Say what has to be declared for it in Extensions or Capabilities of [Options].
func OnRequest[P, R any](method mcp.Method[P, R], fn func(ctx context.Context, params P) (R, error)) RequestHandler {
	return RequestHandler{Method: method.Name, Handle: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		return answerTyped(req, func(p *P) (any, error) { return fn(ctx, *p) })
	}}
}
