package client

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
)

// ReadResource reads the resource with the URI.
func (c *Client) ReadResource(ctx context.Context, uri string, opts ...CallOptions) (*mcp.ReadResourceResult, error) {
	return callNamed[mcp.ReadResourceResult](ctx, c, mcp.MethodReadResource, uri, &mcp.ReadResourceParams{URI: uri}, options.Merge(opts))
}

// callNamed calls a method whose parameters name what it is about.
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
