package server

import (
	"context"

	"github.com/dowel-mcp/dowel/mcp"
)

// isVisible reports whether the item exists for who asks.
func (s *Server) isVisible(ctx context.Context, req *mcp.Request, item Item) bool {
	return s.opts.Visible == nil || s.opts.Visible(ctx, req.Principal, item)
}

// isVisibleURI reports whether a resource exists for who asks, though it is not in the catalog: a template or a provider
// makes it.
func (s *Server) isVisibleURI(ctx context.Context, req *mcp.Request, uri string) bool {
	return s.opts.Visible == nil || s.opts.Visible(ctx, req.Principal, Item{Kind: KindResource, Name: uri})
}

// findVisible returns the item of that name, unless it is hidden from who asks.
func (s *Server) findVisible(ctx context.Context, req *mcp.Request, kind Kind, name []byte) (Item, bool) {
	item, ok := s.catalog.lookupItem(kind, name)
	return item, ok && s.isVisible(ctx, req, item)
}
