package server

import (
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// checkPrompt returns the result with the MIME types that a handler left empty in embedded
// resources, or an error if the protocol does not allow it (server/prompts: data types).
func checkPrompt(r *mcp.GetPromptResult) (*mcp.GetPromptResult, error) {
	if err := mcpwire.CheckMeta(r.Meta); err != nil {
		return nil, err
	}
	isOwn := false // r is a copy
	for i := range r.Messages {
		content := &r.Messages[i].Content
		filled, err := checkPromptContent(content)
		if err == nil {
			err = checkContentMeta(content)
		}
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		if filled == nil {
			continue
		}
		if !isOwn {
			own := *r
			own.Messages, isOwn = slices.Clone(r.Messages), true
			r = &own
		}
		r.Messages[i].Content.Resource = filled
	}
	return r, nil
}

// checkPromptContent checks the types of a block. filled is a copy of the embedded resource with
// its missing MIME type, or nil if it has one.
func checkPromptContent(c *mcp.Content) (filled *mcp.ResourceContents, err error) {
	switch {
	case c.Type == mcp.ContentImage || c.Type == mcp.ContentAudio:
		if err := mcpwire.CheckMIMEType(c.MIMEType); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Type, err)
		}
	case c.Type == mcp.ContentResource && c.Resource != nil:
		if err := mcpwire.CheckURI(c.Resource.URI); err != nil {
			return nil, fmt.Errorf("resource: %w", err)
		}
		if c.Resource.MIMEType != "" {
			return nil, mcpwire.CheckMIMEType(c.Resource.MIMEType)
		}
		own := *c.Resource
		if own.MIMEType = "text/plain"; own.Blob != nil {
			own.MIMEType = "application/octet-stream"
		}
		return &own, nil
	}
	return nil, nil
}

// checkContentMeta checks the keys of _meta in a block and in its embedded resource.
func checkContentMeta(c *mcp.Content) error {
	if err := mcpwire.CheckMeta(c.Meta); err != nil {
		return err
	}
	if c.Resource != nil {
		return mcpwire.CheckMeta(c.Resource.Meta)
	}
	return nil
}

// checkToolMeta checks the keys of _meta in a tool's result.
func checkToolMeta(r *mcp.CallToolResult) error {
	if err := mcpwire.CheckMeta(r.Meta); err != nil {
		return err
	}
	for i := range r.Content {
		if err := checkContentMeta(&r.Content[i]); err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
	}
	return nil
}

// checkReadMeta checks the keys of _meta in the contents of a resource.
func checkReadMeta(r *mcp.ReadResourceResult) error {
	if err := mcpwire.CheckMeta(r.Meta); err != nil {
		return err
	}
	for i := range r.Contents {
		if err := mcpwire.CheckMeta(r.Contents[i].Meta); err != nil {
			return fmt.Errorf("contents[%d]: %w", i, err)
		}
	}
	return nil
}
