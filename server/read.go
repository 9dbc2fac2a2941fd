package server

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if !s.catalog.offers(KindResource) {
		return s.methods.serve(ctx, s, req)
	}
	p, err := readParams(req, "uri")
	if err != nil {
		return nil, err
	}
	c := s.newCall(ctx, req, p)
	defer c.close()
	if err := c.resume(); err != nil {
		return nil, err
	}
	r, out, err := s.readURI(c)
	asking, err := c.end(err)
	if asking != nil {
		return asking, nil
	}
	if err == nil && out == nil {
		err = mcp.ResourceNotFound(string(p.name))
	}
	if err != nil {
		return nil, c.failed(err)
	}
	result := s.result(out)
	hint := s.opts.Cache.ReadResource
	if r.cache != nil {
		hint = *r.cache
	}
	if s.opts.Visible != nil {
		hint.Scope = mcp.CachePrivate // who else may read it, a shared cache cannot know
	}
	result.Cache = c.cache(hint)
	return result, nil
}

// readURI runs the handler of the resource with the call's URI, or of the most specific template that matches it.
func (s *Server) readURI(c *call) (*resource, *mcp.ReadResourceResult, error) {
	uri := string(c.params.name)
	if item, ok := s.catalog.item(KindResource, c.params.name); ok {
		if !s.visible(c.Context, c.req, item) {
			return nil, nil, mcp.ResourceNotFound(uri)
		}
		r := item.entry.(*resource)
		out, err := r.read(c, nil)
		return r, out, err
	}
	if !s.visibleURI(c.Context, c.req, uri) {
		return nil, nil, mcp.ResourceNotFound(uri)
	}
	for _, t := range s.catalog.templates() {
		vars, ok := t.parsed.Match(uri)
		if !ok || !s.visible(c.Context, c.req, t.item) {
			continue
		}
		if out, err := t.read(c, vars); !errors.Is(err, errNoMatch) {
			return t.resource, out, err
		}
	}
	return nil, nil, mcp.ResourceNotFound(uri)
}

func (c *catalog) templates() []*template {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.matching
}

// contents turns what a handler returned into the result, nil if that was nil; out points to it.
func (r *resource) contents(out any, uri string) (*mcp.ReadResourceResult, error) {
	one := func(c mcp.ResourceContents) (*mcp.ReadResourceResult, error) {
		return r.complete(&mcp.ReadResourceResult{Contents: []mcp.ResourceContents{c}}, uri), nil
	}
	switch out := out.(type) {
	case *string:
		return one(mcp.ResourceContents{MIMEType: r.mime("text/plain"), Text: *out})
	case *[]byte:
		if *out == nil {
			return nil, nil
		}
		return one(mcp.ResourceContents{MIMEType: r.mime("application/octet-stream"), Blob: *out})
	case *mcp.Content:
		fallback := ""
		if out.Type == mcp.ContentText {
			fallback = "text/plain"
		}
		return one(out.Contents(uri, r.mime(fallback)))
	case *mcp.ResourceContents:
		return one(*out)
	case *[]mcp.ResourceContents:
		if *out == nil {
			return nil, nil
		}
		return r.complete(&mcp.ReadResourceResult{Contents: *out}, uri), nil
	case **mcp.ReadResourceResult:
		if *out == nil {
			return nil, nil
		}
		return r.complete(*out, uri), nil
	}
	raw, err := schema.Encode(out)
	if err != nil {
		return nil, err
	}
	return one(mcp.ResourceContents{MIMEType: r.mime("application/json"), Text: string(raw)})
}

func (r *resource) mime(fallback string) string {
	if r.mimeType != "" {
		return r.mimeType
	}
	return fallback
}

// complete returns the result with the URIs and MIME types that a handler may leave out.
func (r *resource) complete(out *mcp.ReadResourceResult, uri string) *mcp.ReadResourceResult {
	full := &mcp.ReadResourceResult{Meta: out.Meta, Contents: make([]mcp.ResourceContents, len(out.Contents))}
	for i, c := range out.Contents {
		if c.URI == "" {
			c.URI = uri
		}
		if c.MIMEType == "" {
			c.MIMEType = r.mimeType
		}
		full.Contents[i] = c
	}
	return full
}

// URI returns the URI that a resource's handler is to read, empty elsewhere.
func URI(ctx context.Context) string {
	if c := callFrom(ctx); c != nil && c.req.Method == mcp.MethodReadResource {
		return string(c.params.name)
	}
	return ""
}
