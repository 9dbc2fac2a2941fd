package client

import (
	"context"

	"github.com/dowel-mcp/dowel/mcp"
)

// FixedRoots is a value of [Options.Roots] that does not change.
func FixedRoots(roots ...mcp.Root) func(context.Context) ([]mcp.Root, error) {
	return func(context.Context) ([]mcp.Root, error) { return roots, nil }
}

func (c *Client) listRoots(ctx context.Context) (*mcp.ListRootsResult, error) {
	roots, err := c.opts.Answers.Roots(ctx)
	if err != nil {
		return nil, err
	}
	return &mcp.ListRootsResult{Roots: roots}, nil
}
