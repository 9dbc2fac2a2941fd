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

// Do calls a method that its server and this program agree on: one of the core, of an extension, or their own. An R of
// [json.RawMessage] takes the result as it is; one of [mcp.Response] also takes results of types that extensions add.
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

// encodeParams returns the parameters' object; raw ones as they are.
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

// Notify sends the server a notification, such as that the roots have changed in the legacy era; the core has none for
// clients to send in the modern one. Where the transport carries none the error wraps [errors.ErrUnsupported].
func Notify[P any](ctx context.Context, c *Client, method mcp.NotificationMethod[P], params P) error {
	raw, err := encodeParams(&params)
	if err == nil {
		err = c.Notify(ctx, mcp.Notification{Method: method.Name, Params: raw})
	}
	if err != nil {
		return c.callError(method.Name, "", err)
	}
	return nil
}

// Notify implements [mcp.Notifier]: it is the raw form of the function [Notify].
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
