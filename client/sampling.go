package client

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/mcp"
)

// sampleModel lets the client's model speak, within what was declared.
func (c *Client) sampleModel(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if (p.Tools != nil || p.ToolChoice != nil) && !c.opts.Answers.SampleTools {
		return nil, mcp.InvalidParams("this client did not declare sampling with tools")
	}
	res, err := c.opts.Answers.Sample(ctx, p)
	if err == nil && res == nil {
		err = errors.New("Options.Sample returned neither a message nor an error")
	}
	return res, err
}
