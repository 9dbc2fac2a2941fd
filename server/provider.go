package server

import (
	"context"
	"iter"

	"github.com/dowel-mcp/dowel/mcp"
)

// ResourceProvider yields resources that are computed for each request, such as the keys of a store: those that come after
// the URI given, all of them where it is empty. The order must be the same each time, and must not depend on whether that
// URI still exists; sorting by URI does. It yields lazily: a page takes no more than it holds. What is yielded is read through
// a resource or template of the server. Its context is that of a handler.
type ResourceProvider func(ctx context.Context, after string) iter.Seq2[mcp.Resource, error]

// Provide adds computed resources behind those that were added, and behind earlier providers. Announce changes of what it
// yields with [Server.ListChanged].
func (s *Server) Provide(p ResourceProvider) {
	s.catalog.mu.Lock()
	s.catalog.providers = append(s.catalog.providers[:len(s.catalog.providers):len(s.catalog.providers)], p)
	s.catalog.mu.Unlock()
	s.ListChanged(KindResource)
}

// ListChanged tells clients that listen that the list of a kind has changed, where the server cannot know: a provider, or
// what [Options.Visible] says.
func (s *Server) ListChanged(kind Kind) {
	s.subscriptions.notifyListChanged(false, []Item{{Kind: kind}})
}

// providedEntries yields what providers compute, from a position on, except what the catalog holds.
func (s *Server) providedEntries(ctx context.Context, req *mcp.Request, providers []ResourceProvider, from position, yield func(listEntry, error) bool) {
	c := s.newCall(ctx, req, callParams{})
	defer c.close()
	for n := from.provider; n <= uint64(len(providers)); n++ {
		for r, err := range providers[n-1](c, from.name) {
			if err != nil {
				yield(listEntry{}, err)
				return
			}
			if _, known := s.catalog.lookupItem(KindResource, []byte(r.URI)); known || !s.isVisibleURI(ctx, req, r.URI) {
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
