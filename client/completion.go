package client

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
)

// Complete asks how the argument of a prompt ([mcp.PromptRef]) or resource template ([mcp.ResourceRef]) can go on from
// value. settled holds the arguments that have their values already; it may be nil.
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
