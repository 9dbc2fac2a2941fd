package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Do calls any method: one of the core, of an extension, or one that client and server agreed on.
// If R is [json.RawMessage], it receives the raw result; if R is [mcp.Response], it also receives
// results of types that extensions add.
//
//	var Summarize = mcp.Method[SummarizeParams, SummarizeResult]{Name: "acme/summarize"}
//	result, err := client.Do(ctx, c, Summarize, SummarizeParams{…})
func Do[P, R any](ctx context.Context, c *Client, method mcp.Method[P, R], params P, opts ...CallOptions) (out R, err error) {
	raw, err := encodeParams(&params)
	if err != nil {
		return out, c.callError(method.Name, "", err)
	}
	resp, err := c.callMethod(ctx, method.Name, "", raw, options.Merge(opts))
	if err != nil {
		return out, err
	}
	if err := c.decodeResponse(resp, &out); err != nil {
		return out, c.callError(method.Name, "", err)
	}
	return out, nil
}

// encodeParams encodes the parameters, which must be an object. Raw parameters stay unchanged.
func encodeParams(params any) (raw json.RawMessage, err error) {
	if own, ok := params.(*json.RawMessage); ok {
		raw = *own
		err = rawjson.CheckAll(raw)
	} else {
		raw, err = mcp.Encode(params)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the parameters: %w", err)
	case !rawjson.IsObject(raw):
		return nil, errors.New("the parameters must be an object")
	}
	return raw, nil
}

func (c *Client) decodeResponse(resp *mcp.Response, out any) error {
	if out, ok := out.(*mcp.Response); ok {
		*out = *resp
		return nil
	}
	if err := requireComplete(resp); err != nil {
		return err
	}
	if out, ok := out.(*json.RawMessage); ok {
		*out = bytes.Clone(resp.Raw) // the cache may hold it too
		return nil
	}
	return readable(mcp.Decode(resp.Raw, out))
}

// Notify sends the server a notification; it implements [mcp.Notifier]. A legacy server takes
// [mcp.NotificationRootsChanged]; the modern core has no notification that clients send. If the
// transport carries none, the error wraps [errors.ErrUnsupported].
func (c *Client) Notify(ctx context.Context, n mcp.Notification) error {
	l, err := c.conn.acquireLink(ctx, 0)
	if err != nil {
		return err
	}
	if t, ok := l.transport.(mcp.Notifier); ok {
		return t.Notify(ctx, n)
	}
	return fmt.Errorf("this connection carries no notifications to the server: %w", errors.ErrUnsupported)
}

// Complete asks for completions of value, the text typed so far for an argument of a prompt
// ([mcp.PromptRef]) or of a resource template ([mcp.ResourceRef]). settled holds the arguments that
// already have values; it may be nil.
func (c *Client) Complete(ctx context.Context, ref mcp.CompletionRef, argument, value string, settled map[string]string, opts ...CallOptions) (*mcp.Completion, error) {
	params := &mcp.CompleteParams{Ref: ref, Argument: mcp.CompletionArgument{Name: argument, Value: value}}
	if len(settled) > 0 {
		params.Context = &mcp.CompletionContext{Arguments: settled}
	}
	res, err := callNamed[mcp.CompleteResult](ctx, c, mcp.MethodComplete, ref.Name+ref.URI, params, options.Merge(opts))
	if err != nil {
		return nil, err
	}
	return &res.Completion, nil
}

// GetPrompt returns the messages of a prompt, with the arguments filled in.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string, opts ...CallOptions) (*mcp.GetPromptResult, error) {
	params := &mcp.GetPromptParams{Name: name, Arguments: args}
	return callNamed[mcp.GetPromptResult](ctx, c, mcp.MethodGetPrompt, name, params, options.Merge(opts))
}

// ReadResource reads the resource with the URI.
func (c *Client) ReadResource(ctx context.Context, uri string, opts ...CallOptions) (*mcp.ReadResourceResult, error) {
	return callNamed[mcp.ReadResourceResult](ctx, c, mcp.MethodReadResource, uri, &mcp.ReadResourceParams{URI: uri}, options.Merge(opts))
}

// callNamed calls a method whose parameters name a prompt, a resource or a template.
func callNamed[R any](ctx context.Context, c *Client, method, name string, params any, o CallOptions) (*R, error) {
	raw, err := mcp.Encode(params)
	if err != nil {
		return nil, c.callError(method, name, err)
	}
	resp, err := c.callMethod(ctx, method, name, raw, o)
	if err != nil {
		return nil, err
	}
	out := new(R)
	if err := c.decodeResponse(resp, out); err != nil {
		return nil, c.callError(method, name, err)
	}
	return out, nil
}
