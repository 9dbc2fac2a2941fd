package server

import (
	"context"
	"iter"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// ResourceProvider yields resources that are computed for each request, such as the keys of a
// store. It yields the resources after the URI after, or all if that is empty. The order must not
// change between calls, nor depend on whether that URI still exists; sorting by URI is enough. The
// server stops reading at the end of a page. Clients read the yielded resources through a resource
// or template of the server. A resource whose URI is invalid is logged and left out. ctx is the
// context of a handler.
type ResourceProvider func(ctx context.Context, after string) iter.Seq2[mcp.Resource, error]

// Provide adds computed resources after the added ones and after earlier providers. Report changes
// of the yielded resources with [Server.ListChanged].
func (s *Server) Provide(p ResourceProvider) {
	s.catalog.mu.Lock()
	s.catalog.providers = append(s.catalog.providers[:len(s.catalog.providers):len(s.catalog.providers)], p)
	s.catalog.mu.Unlock()
	s.ListChanged(KindResource)
}

// ListChanged notifies listening clients that the list of a kind has changed. Call it for changes
// that the server cannot see: of a provider, or of the results of [Options.Visible].
func (s *Server) ListChanged(kind Kind) {
	s.notifyListChanged(false, []Item{{Kind: kind}})
}

// providedEntries yields the providers' resources from a position on, except those in the catalog.
func (s *Server) providedEntries(ctx context.Context, req *mcp.Request, providers []ResourceProvider, from position, yield func(listEntry, error) bool) {
	c := s.newCall(ctx, req, callParams{})
	defer c.endCall()
	for n := from.provider; n <= uint64(len(providers)); n++ {
		for r, err := range providers[n-1](c, from.name) {
			if err != nil {
				yield(listEntry{}, err)
				return
			}
			if _, known := s.catalog.lookupItem(KindResource, []byte(r.URI)); known || !s.isVisibleURI(ctx, req, r.URI) {
				continue
			}
			if err := mcpwire.CheckURI(r.URI); err != nil {
				s.opts.Logger.WarnContext(ctx, "a computed resource is left out", "err", err)
				continue
			}
			if r.Name == "" {
				r.Name = r.URI
			}
			encoded, err := mcp.Encode(&r)
			if !yield(listEntry{position{provider: n, name: r.URI}, encoded}, err) {
				return
			}
		}
		from.name = ""
	}
}
