package hub

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/catalog"
)

type (
	itemCatalog = catalog.Catalog[*Upstream, State]
	item        = catalog.Item[*Upstream]
)

// catalogCache holds the current catalog. It builds one when it is asked for, not when something
// changes.
type catalogCache struct {
	hub     *Hub
	buildMu sync.Mutex
	current atomic.Pointer[itemCatalog] // nil until the next build
	version atomic.Uint64
}

// invalidate makes the next use build a new catalog. It takes no lock, so callers may hold any.
func (c *catalogCache) invalidate() {
	c.version.Add(1)
	c.current.Store(nil)
}

// Catalog returns the current catalog: the items of all upstreams, for package gateway. Its type is
// internal: other programs list the items with a client of the gateway. Catalog is cheap if nothing
// has changed since the last call.
func (h *Hub) Catalog() *catalog.Catalog[*Upstream, State] {
	c := &h.catalog
	if present := c.current.Load(); present != nil {
		return present
	}
	c.buildMu.Lock()
	defer c.buildMu.Unlock()
	for {
		if present := c.current.Load(); present != nil {
			return present
		}
		version := c.version.Load()
		made := newCatalog(h.Upstreams())
		c.current.Store(made)
		if c.version.Load() == version {
			return made
		}
		c.current.CompareAndSwap(made, nil) // an upstream has changed during the build
	}
}

// inCatalog reports whether items of an upstream with that status are in the catalog. They stay
// while the server restarts.
func inCatalog(s Status) bool { return s == Ready || s == Starting || s == Stopped }

// newCatalog builds a catalog of the upstreams' current lists.
func newCatalog(upstreams []*Upstream) *itemCatalog {
	c := catalog.New[*Upstream, State](upstreams)
	for _, u := range upstreams {
		u.mu.Lock()
		l, state := u.lists, u.state
		u.mu.Unlock()
		switch {
		case inCatalog(state.Status) && l != nil:
			c.AddLists(&l.offered)
		case state.Status != Disabled && state.Status != Removed:
			c.AddMissing(u, state)
		}
	}
	c.AssignNames()
	return c
}

// isPending reports whether an upstream of the catalog starts for the first time and has no lists
// yet.
func isPending(c *itemCatalog) bool {
	return slices.ContainsFunc(c.Missing(), func(m catalog.Missing[State]) bool {
		return m.State.Status == Starting && m.State.Attempt == 0
	})
}
