package server

import (
	"cmp"
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// readResource serves resources/read.
func (s *Server) readResource(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if !s.catalog.offers(KindResource) {
		return s.methods.serveMethod(ctx, s, req)
	}
	p, err := readParams(req, "uri")
	if err != nil {
		return nil, err
	}
	c := s.newCall(ctx, req, p)
	defer c.endCall()
	if err := c.loadState(); err != nil {
		return nil, err
	}
	r, out, err := s.readURI(c)
	asking, err := c.finish(err)
	if asking != nil {
		return asking, nil
	}
	switch {
	case err != nil:
	case out == nil:
		err = mcp.ResourceNotFound(string(p.name))
	default:
		err = checkReadMeta(out)
	}
	if err != nil {
		return nil, c.handlerError(err)
	}
	result := s.newResult(out)
	hint := s.opts.Cache[mcp.MethodReadResource]
	if r.cache != nil {
		hint = *r.cache
	}
	if s.opts.Visible != nil {
		hint.Scope = mcp.CachePrivate // a shared cache cannot know which principals may read it
	}
	result.Cache = c.cacheHint(hint)
	return result, nil
}

// readURI runs the handler of the resource with the call's URI. Without such a resource, it runs
// the handler of the most specific template that matches the URI.
func (s *Server) readURI(c *call) (*registeredResource, *mcp.ReadResourceResult, error) {
	uri := string(c.params.name)
	if item, ok := s.catalog.lookupItem(KindResource, c.params.name); ok {
		if !s.isVisible(c.Context, c.req, item) {
			return nil, nil, mcp.ResourceNotFound(uri)
		}
		r := item.entry.(*registeredResource)
		out, err := r.read(c, nil)
		return r, out, err
	}
	if !s.isVisibleURI(c.Context, c.req, uri) {
		return nil, nil, mcp.ResourceNotFound(uri)
	}
	for _, t := range s.catalog.templatesRanked() {
		vars, ok := t.parsed.Match(uri)
		if !ok || !s.isVisible(c.Context, c.req, t.item) {
			continue
		}
		if out, err := t.read(c, vars); !errors.Is(err, errNoMatch) {
			return t.registeredResource, out, err
		}
	}
	return nil, nil, mcp.ResourceNotFound(uri)
}

func (c *catalog) templatesRanked() []*registeredTemplate {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.templatesByRank
}

// newReadResult converts a handler's output into a result. out points to the output. A nil output
// gives a nil result.
func (r *registeredResource) newReadResult(out any, uri string) (*mcp.ReadResourceResult, error) {
	one := func(c mcp.ResourceContents) (*mcp.ReadResourceResult, error) {
		return r.fillContents(&mcp.ReadResourceResult{Contents: []mcp.ResourceContents{c}}, uri), nil
	}
	switch out := out.(type) {
	case *string:
		return one(mcp.ResourceContents{MIMEType: r.mimeTypeOr("text/plain"), Text: *out})
	case *[]byte:
		if *out == nil {
			return nil, nil
		}
		return one(mcp.ResourceContents{MIMEType: r.mimeTypeOr("application/octet-stream"), Blob: *out})
	case *mcp.Content:
		fallback := ""
		if out.Type == mcp.ContentText {
			fallback = "text/plain"
		}
		return one(resourceContents(*out, uri, r.mimeTypeOr(fallback)))
	case *mcp.ResourceContents:
		return one(*out)
	case *[]mcp.ResourceContents:
		if *out == nil {
			return nil, nil
		}
		return r.fillContents(&mcp.ReadResourceResult{Contents: *out}, uri), nil
	case **mcp.ReadResourceResult:
		if *out == nil {
			return nil, nil
		}
		return r.fillContents(*out, uri), nil
	}
	raw, err := schema.Encode(out)
	if err != nil {
		return nil, err
	}
	return one(mcp.ResourceContents{MIMEType: r.mimeTypeOr("application/json"), Text: string(raw)})
}

func (r *registeredResource) mimeTypeOr(fallback string) string {
	if r.mimeType != "" {
		return r.mimeType
	}
	return fallback
}

// fillContents fills in the URIs and MIME types that a handler left empty.
func (r *registeredResource) fillContents(out *mcp.ReadResourceResult, uri string) *mcp.ReadResourceResult {
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

// URI returns the URI that a resource's handler must read. It returns "" in other handlers.
func URI(ctx context.Context) string {
	if c := callFrom(ctx); c != nil && c.req.Method == mcp.MethodReadResource {
		return string(c.params.name)
	}
	return ""
}

// resourceContents converts content into the contents of the resource with the URI: text stays
// text, images and audio become binary data with their MIME type, and an embedded resource stays
// itself. mimeType is used if the content has none.
func resourceContents(c mcp.Content, uri, mimeType string) mcp.ResourceContents {
	if c.MIMEType != "" {
		mimeType = c.MIMEType
	}
	switch {
	case c.Resource != nil:
		r := *c.Resource
		r.URI, r.MIMEType = cmp.Or(r.URI, uri), cmp.Or(r.MIMEType, mimeType)
		return r
	case c.Type == mcp.ContentImage || c.Type == mcp.ContentAudio:
		data := c.Data
		if data == nil {
			data = []byte{}
		}
		return mcp.ResourceContents{URI: uri, MIMEType: mimeType, Blob: data, Meta: c.Meta}
	}
	return mcp.ResourceContents{URI: uri, MIMEType: mimeType, Text: c.Text, Meta: c.Meta}
}
