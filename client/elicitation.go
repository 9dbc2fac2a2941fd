package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// ElicitRequest is a question to the user. Show which server asks, show a URL in full, and let the
// user decline.
type ElicitRequest struct {
	// Server is the name by which the user knows the asking server.
	Server string
	// ElicitParams holds the question: a form, or in the mode [mcp.ElicitURL] a URL to visit.
	mcp.ElicitParams
}

// askUser puts a question to the user, one at a time. It adds the schema's defaults to an accepted
// form and then validates it.
func (c *Client) askUser(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	form, err := c.checkElicitation(p)
	if err != nil {
		return nil, err
	}
	select {
	case c.userTurn <- struct{}{}:
		defer func() { <-c.userTurn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	res, err := c.opts.Answers.Elicit(ctx, &ElicitRequest{Server: c.serverName(), ElicitParams: *p})
	if err == nil && res != nil {
		err = mcpwire.CheckMeta(res.Meta)
	}
	switch {
	case err != nil:
		return nil, err
	case res == nil:
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	}
	switch res.Action {
	case mcp.ElicitDecline, mcp.ElicitCancel:
		return &mcp.ElicitResult{Action: res.Action, Meta: res.Meta}, nil
	case mcp.ElicitAccept:
		if p.Mode == mcp.ElicitURL {
			return &mcp.ElicitResult{Action: res.Action, Meta: res.Meta}, nil
		}
		content, err := completeForm(form, res.Content)
		return &mcp.ElicitResult{Action: res.Action, Content: content, Meta: res.Meta}, err
	}
	return nil, fmt.Errorf("unknown action %q: want mcp.ElicitAccept, ElicitDecline or ElicitCancel", res.Action)
}

// checkElicitation refuses a question that the client did not declare. It returns the schema of the
// answer, or nil if the answer cannot be checked.
func (c *Client) checkElicitation(p *mcp.ElicitParams) (*schema.Schema, error) {
	switch {
	case p.Mode == mcp.ElicitURL && c.opts.Answers.ElicitURL:
		if u, err := url.Parse(p.URL); err != nil || !u.IsAbs() {
			return nil, mcp.InvalidParams("url must be an absolute URL (got %q)", p.URL)
		}
		return nil, nil
	case p.Mode != "" && p.Mode != mcp.ElicitForm:
		return nil, mcp.InvalidParams("this client did not declare the elicitation mode %q", p.Mode)
	case p.RequestedSchema == nil:
		return nil, nil
	}
	form, err := schema.Compile(p.RequestedSchema)
	if errors.Is(err, schema.ErrUnsupported) && !errors.Is(err, schema.ErrDialect) && !errors.Is(err, schema.ErrOutside) {
		c.opts.Logger.Warn("the answer to a server's question cannot be checked", "server", c.serverName(), "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, mcp.InvalidParams("requestedSchema: %v", err)
	}
	return form, nil
}

// completeForm adds the schema's defaults to the user's content and validates the result.
func completeForm(form *schema.Schema, content json.RawMessage) (json.RawMessage, error) {
	if len(content) == 0 {
		content = json.RawMessage("{}")
	}
	if !rawjson.IsObject(content) {
		return nil, errors.New("the content of an accepted form must be an object")
	}
	if form == nil {
		return content, rawjson.CheckAll(content)
	}
	if err := rawjson.CheckAll(content); err != nil {
		return nil, err
	}
	content, err := form.ApplyDefaults(content)
	if err != nil {
		return nil, err
	}
	if err := form.Validate(content); err != nil {
		return nil, fmt.Errorf("the answer does not match the form: %w", err)
	}
	return content, nil
}
