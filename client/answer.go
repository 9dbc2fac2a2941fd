package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// answerLegacyQuestion answers a question that a legacy server sends while it handles a call. The
// clocks of the calls that may be waiting for the answer stop meanwhile.
func (c *Client) answerLegacyQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	resume := c.clocks.pauseFor(ctx)
	defer resume()
	return c.answerQuestion(ctx, req)
}

// answerQuestion answers one question of the server. The questions of both eras come here. A panic
// of an answering function becomes the answer's error.
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
		if h.method == req.Method {
			return h.answer(ctx, req)
		}
	}
	if c.opts.Answers.Handler != nil {
		return c.opts.Answers.Handler.ServeMCP(ctx, req)
	}
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "this client does not answer %s", req.Method)
}

// answerTyped decodes the parameters of a question for f, and wraps f's result.
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

// RequestHandler answers the questions of one method. [OnRequest] makes one.
type RequestHandler struct {
	method string
	answer mcp.HandlerFunc
}

// OnRequest returns a handler for one method that servers ask with: a method of an extension, or
// one that client and server agreed on. A legacy server asks live, a modern one through an input
// request; fn answers both. fn may be called concurrently; its context ends with the call that led
// to the question. The result must be a JSON object. If fn returns an [*mcp.Error], the server gets
// its code. Declare the method in Extensions or in Answers.Capabilities of [Options] if the server
// needs to know of it.
func OnRequest[P, R any](method mcp.Method[P, R], fn func(ctx context.Context, params P) (R, error)) RequestHandler {
	return RequestHandler{method: method.Name, answer: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		return answerTyped(req, func(p *P) (any, error) { return fn(ctx, *p) })
	}}
}

// FixedRoots returns a function for [Answers].Roots that always returns the same roots.
func FixedRoots(roots ...mcp.Root) func(context.Context) ([]mcp.Root, error) {
	return func(context.Context) ([]mcp.Root, error) { return roots, nil }
}

func (c *Client) listRoots(ctx context.Context) (*mcp.ListRootsResult, error) {
	roots, err := c.opts.Answers.Roots(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if err := cmp.Or(mcpwire.CheckRoot(r.URI), mcpwire.CheckMeta(r.Meta)); err != nil {
			return nil, fmt.Errorf("Answers.Roots returned a root that must not be sent: %w", err)
		}
	}
	return &mcp.ListRootsResult{Roots: roots}, nil
}

// sampleModel asks the client's model for a message. It refuses tools that the client did not
// declare.
func (c *Client) sampleModel(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if (p.Tools != nil || p.ToolChoice != nil) && !c.opts.Answers.SampleTools {
		return nil, mcp.InvalidParams("this client did not declare sampling with tools")
	}
	res, err := c.opts.Answers.Sample(ctx, p)
	if err == nil {
		err = checkSampled(res)
	}
	return res, err
}

// checkSampled returns an error for a message that must not be sent (client/sampling).
func checkSampled(res *mcp.CreateMessageResult) error {
	switch {
	case res == nil:
		return errors.New("Answers.Sample returned neither a message nor an error")
	case res.Role != mcp.RoleUser && res.Role != mcp.RoleAssistant:
		return fmt.Errorf("Answers.Sample returned a message with the role %q: want assistant or user", res.Role)
	case len(res.Content) == 0:
		return errors.New("Answers.Sample returned a message without content")
	}
	return mcpwire.CheckMeta(res.Meta)
}
