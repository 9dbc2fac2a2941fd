package hub

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
)

// Catalog is an immutable list of everything that all upstreams offer at one moment.
type Catalog struct {
	lists   [kinds][]*Item
	caches  [kinds]mcp.Cache
	missing []Missing
	pending bool // a starting upstream has no lists yet

	byWire   [kinds]map[string]*Item
	byLocal  map[localName]*Item
	byFolded [kinds]map[string]*Item // nil for a name that several items have
	byBare   [kinds]map[string]*Item // like byFolded, without the server's name
	shared   map[string]bool         // URIs and templates of several upstreams
	servers  map[string]*Upstream    // by server name on the wire
}

// localName is a key for an item of one upstream.
type localName struct {
	upstream *Upstream
	kind     Kind
	name     string
}

// Missing is an upstream that should have items in the catalog and has none, with its state.
type Missing struct {
	// Upstream is the name of the upstream, State its state when the catalog was built.
	Upstream string
	State    State
}

// catalogCache holds the current Catalog. It builds one when it is asked for, not when something
// changes.
type catalogCache struct {
	hub     *Hub
	buildMu sync.Mutex
	current atomic.Pointer[Catalog] // nil until the next build
	version atomic.Uint64
}

// invalidate makes the next use build a new catalog. It takes no lock, so callers may hold any.
func (c *catalogCache) invalidate() {
	c.version.Add(1)
	c.current.Store(nil)
}

// Catalog returns the current catalog. It is cheap if nothing has changed since the last call.
func (h *Hub) Catalog() *Catalog {
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
func newCatalog(upstreams []*Upstream) *Catalog {
	c := &Catalog{shared: map[string]bool{}, servers: map[string]*Upstream{}, byLocal: map[localName]*Item{}}
	for k := range kinds {
		c.byWire[k] = map[string]*Item{}
		c.byFolded[k], c.byBare[k] = map[string]*Item{}, map[string]*Item{}
		c.caches[k] = mcp.Cache{TTL: 1 << 62, Scope: mcp.CachePublic}
	}
	for _, u := range upstreams {
		c.servers[wireServer(u.name)] = u
		u.mu.Lock()
		l, state := u.lists, u.state
		u.mu.Unlock()
		if !inCatalog(state.Status) || l == nil {
			if state.Status != Disabled && state.Status != Removed {
				c.missing = append(c.missing, Missing{u.name, state})
				c.pending = c.pending || state.Status == Starting && state.Attempt == 0
			}
			continue
		}
		c.addLists(l)
	}
	c.assignNames()
	return c
}

// addLists appends the items of an upstream.
func (c *Catalog) addLists(l *serverLists) {
	for k := range kinds {
		if len(l.items[k]) > 0 {
			c.caches[k] = narrowestCache(c.caches[k], l.caches[k])
		}
		c.lists[k] = append(c.lists[k], l.items[k]...)
	}
}

// assignNames indexes all items by their names. Resources and templates of several upstreams get
// qualified URIs first.
func (c *Catalog) assignNames() {
	for _, k := range []Kind{Resource, Template} {
		owner := map[string]*Upstream{}
		for _, item := range c.lists[k] {
			if other := owner[item.Name]; other != nil && other != item.Upstream {
				c.shared[item.Name] = true
			}
			owner[item.Name] = item.Upstream
		}
		for i, item := range c.lists[k] {
			if c.shared[item.Name] {
				c.lists[k][i] = item.withQualifiedURI()
			}
		}
	}
	for k := range kinds {
		for _, item := range c.lists[k] {
			c.indexItem(k, item)
		}
	}
}

// indexItem indexes an item by its names. The first item of a name keeps it.
func (c *Catalog) indexItem(k Kind, item *Item) {
	if _, taken := c.byWire[k][item.WireName]; !taken {
		c.byWire[k][item.WireName] = item
	}
	c.byLocal[localName{item.Upstream, k, item.LocalName}] = item
	if k == Resource || k == Template {
		return // URIs are exact
	}
	indexUnique(c.byFolded[k], foldName(item.WireName), item)
	indexUnique(c.byFolded[k], foldName(item.QualifiedName), item)
	indexUnique(c.byBare[k], foldName(item.LocalName), item)
}

// indexUnique indexes an item by a name, or marks the name as ambiguous with nil if another item
// has it.
func indexUnique(names map[string]*Item, name string, item *Item) {
	if other, taken := names[name]; taken && other != item {
		item = nil
	}
	names[name] = item
}

// qualifiedScheme begins URIs that name their upstream.
const qualifiedScheme = "dowel://"

// withQualifiedURI returns a copy of a resource or template under a URI that no other upstream has.
func (item *Item) withQualifiedURI() *Item {
	q := *item
	q.WireName = qualifiedURI(item.Upstream.name, item.Name)
	q.Definition = replaceText(item.LocalDefinition, kindTable[item.Kind].key, q.WireName)
	return &q
}

// qualifiedURI returns a URI that reads a resource of one upstream even if others have the same
// URI.
func qualifiedURI(upstream, uri string) string {
	return qualifiedScheme + wireServer(upstream) + "/" + uri
}

// Items returns the items of a kind in the order of the upstreams. The caller must not change the
// slice.
func (c *Catalog) Items(k Kind) []*Item { return c.lists[k] }

// Count returns how many items of a kind an upstream has in the catalog.
func (c *Catalog) Count(u *Upstream, k Kind) (n int) {
	for _, item := range c.lists[k] {
		if item.Upstream == u {
			n++
		}
	}
	return n
}

// Cache returns the caching hint of a list: the narrowest of all upstreams' hints.
func (c *Catalog) Cache(k Kind) mcp.Cache {
	if len(c.lists[k]) == 0 {
		return mcp.Cache{}
	}
	return c.caches[k]
}

// Missing returns the upstreams that should have items in the catalog and have none.
func (c *Catalog) Missing() []Missing { return c.missing }

// Owns reports whether a tool or prompt of that name, on the wire or qualified, would belong to the
// upstream.
func (m *Missing) Owns(name string) bool {
	for _, prefix := range []string{plainName(m.Upstream) + separator, m.Upstream + "."} {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// Find returns the tool or prompt of a name, or nil. It tries the name on the wire, then the
// qualified name, then names that repair usual mistakes of models: - for _, another case, a missing
// server name. A name that could mean two items finds neither.
func (c *Catalog) Find(k Kind, name string) *Item {
	if item := c.byWire[k][name]; item != nil {
		return item
	}
	if item := c.byFolded[k][foldName(name)]; item != nil {
		return item
	}
	return c.byBare[k][foldName(name)]
}

// FindLocal returns the tool or prompt of one upstream with that [Item.LocalName], or nil.
func (c *Catalog) FindLocal(u *Upstream, k Kind, name string) *Item {
	return c.byLocal[localName{u, k, name}]
}

// WireURI returns the URI of an upstream's resource in the catalog. It is the upstream's own URI
// unless [Catalog.FindResource] would find another upstream for it.
func (c *Catalog) WireURI(u *Upstream, uri string) string {
	if c.shared[uri] {
		return qualifiedURI(u.name, uri)
	}
	if other, _ := c.FindResource(uri); other != nil && other != u {
		return qualifiedURI(u.name, uri)
	}
	return uri
}

// FindResource returns the upstream that has the resource of a URI, and the upstream's own URI. The
// upstream is nil if none lists the URI or a template that matches it.
func (c *Catalog) FindResource(uri string) (*Upstream, string) {
	if rest, ok := strings.CutPrefix(uri, qualifiedScheme); ok {
		server, own, _ := strings.Cut(rest, "/")
		if u := c.servers[server]; u != nil {
			return u, own
		}
	}
	if item := c.byWire[Resource][uri]; item != nil {
		return item.Upstream, item.Name
	}
	for _, item := range c.lists[Resource] {
		if item.Name == uri {
			return item.Upstream, uri
		}
	}
	for _, item := range c.lists[Template] {
		if item.template == nil {
			continue
		}
		if _, ok := item.template.Match(uri); ok {
			return item.Upstream, uri
		}
	}
	return nil, uri
}

// narrowestCache returns the shorter lifetime and the narrower scope of two hints, for a result that
// combines two others.
func narrowestCache(a, b mcp.Cache) mcp.Cache {
	a.TTL = min(a.TTL, b.TTL)
	if b.Scope != mcp.CachePublic {
		a.Scope = mcp.CachePrivate
	}
	return a
}
