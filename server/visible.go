package server

import (
	"context"

	"github.com/dowel-mcp/dowel/mcp"
)

// visible reports whether the item exists for who asks.
func (s *Server) visible(ctx context.Context, req *mcp.Request, item Item) bool {
	return s.opts.Visible == nil || s.opts.Visible(ctx, req.Principal, item)
}

// visibleURI reports whether a resource exists for who asks, though it is not in the catalog: a template or a provider
// makes it.
func (s *Server) visibleURI(ctx context.Context, req *mcp.Request, uri string) bool {
	return s.opts.Visible == nil || s.opts.Visible(ctx, req.Principal, Item{Kind: KindResource, Name: uri})
}

// find returns the item of that name, unless it is hidden from who asks.
func (s *Server) find(ctx context.Context, req *mcp.Request, kind Kind, name []byte) (Item, bool) {
	item, ok := s.catalog.item(kind, name)
	return item, ok && s.visible(ctx, req, item)
}
