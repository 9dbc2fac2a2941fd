package client

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
)

// GetPrompt returns the prompt's messages, with the arguments filled in.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string, opts ...CallOptions) (*mcp.GetPromptResult, error) {
	params := &mcp.GetPromptParams{Name: name, Arguments: args}
	return callNamed[mcp.GetPromptResult](ctx, c, mcp.MethodGetPrompt, name, params, options.Merge(opts))
}
