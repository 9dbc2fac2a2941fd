package hub

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
)

// Catalog is what all upstreams offered at one moment. It does not change.
type Catalog struct {
	lists   [kinds][]*Item
	caches  [kinds]mcp.Cache
	missing []Missing
	pending bool // it is not known of all that are starting what they offer

	byWire   [kinds]map[string]*Item
	byLocal  map[localName]*Item
	byFolded [kinds]map[string]*Item // nil where several have the name
	byBare   [kinds]map[string]*Item // the same, without the server's name
	shared   map[string]bool         // URIs and templates that several upstreams have
	servers  map[string]*Upstream    // by their names on the wire
}

// localName is what one upstream offers a thing as.
type localName struct {
	upstream *Upstream
	kind     Kind
	name     string
}

// Missing is an upstream whose things are not in the catalog.
type Missing struct {
	Upstream string
	State    State
}

// catalogCache holds the present Catalog; it is made when somebody wants it.
type catalogCache struct {
	hub     *Hub
	buildMu sync.Mutex
	current atomic.Pointer[Catalog] // nil while it has to be made
	version atomic.Uint64
}

// invalidate makes the next look make a new catalog. It may be called under any lock.
func (c *catalogCache) invalidate() {
	c.version.Add(1)
	c.current.Store(nil)
}

// Catalog returns what the upstreams offer now.
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
		c.current.CompareAndSwap(made, nil) // something has changed meanwhile
	}
}

// inCatalog reports whether what an upstream with that status offers is in the catalog: while it is started again, too.
func inCatalog(s Status) bool { return s == Ready || s == Starting || s == Stopped }

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
		o, state := u.lists, u.state
		u.mu.Unlock()
		if !inCatalog(state.Status) || o == nil {
			if state.Status != Disabled && state.Status != Removed {
				c.missing = append(c.missing, Missing{u.name, state})
				c.pending = c.pending || state.Status == Starting && state.Attempt == 0
			}
			continue
		}
		c.addLists(o)
	}
	c.assignNames()
	return c
}

func (c *Catalog) addLists(o *serverLists) {
	for k := range kinds {
		if len(o.items[k]) > 0 {
			c.caches[k] = c.caches[k].Narrowest(o.caches[k])
		}
		for _, item := range o.items[k] {
			c.lists[k] = append(c.lists[k], item)
		}
	}
}

// assignNames gives each thing its names, and those of several upstreams qualified ones.
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

func (c *Catalog) indexItem(k Kind, item *Item) {
	if _, taken := c.byWire[k][item.WireName]; !taken {
		c.byWire[k][item.WireName] = item
	}
	c.byLocal[localName{item.Upstream, k, item.LocalName}] = item
	if k == Resource || k == Template {
		return // a URI means what it says
	}
	indexUnique(c.byFolded[k], foldName(item.WireName), item)
	indexUnique(c.byFolded[k], foldName(item.QualifiedName), item)
	indexUnique(c.byBare[k], foldName(item.LocalName), item)
}

// indexUnique gives an item a name, which is nobody's any more where another one has it.
func indexUnique(names map[string]*Item, name string, item *Item) {
	if other, taken := names[name]; taken && other != item {
		item = nil
	}
	names[name] = item
}

// qualifiedScheme begins URIs that say which upstream they are of.
const qualifiedScheme = "dowel://"

// withQualifiedURI returns the resource or template under a URI that no other upstream has.
func (item *Item) withQualifiedURI() *Item {
	q := *item
	q.WireName = qualifiedURI(item.Upstream.name, item.Name)
	q.Definition = replaceText(item.LocalDefinition, kindTable[item.Kind].key, q.WireName)
	return &q
}

// qualifiedURI returns the URI under which a resource can be read of one upstream, whoever else has one of that URI.
func qualifiedURI(upstream, uri string) string {
	return qualifiedScheme + wireServer(upstream) + "/" + uri
}

// Items returns the things of a kind in the order of the upstreams. The slice must not be changed.
func (c *Catalog) Items(k Kind) []*Item { return c.lists[k] }

// Count returns how many things of a kind an upstream has in the catalog.
func (c *Catalog) Count(u *Upstream, k Kind) (n int) {
	for _, item := range c.lists[k] {
		if item.Upstream == u {
			n++
		}
	}
	return n
}

// Cache returns for how long, and by whom, a list may be kept: the narrowest of what the upstreams allow.
func (c *Catalog) Cache(k Kind) mcp.Cache {
	if len(c.lists[k]) == 0 {
		return mcp.Cache{}
	}
	return c.caches[k]
}

// Missing returns the upstreams of which nothing is in the catalog, although it should be.
func (c *Catalog) Missing() []Missing { return c.missing }

// Owns reports whether a tool or prompt of that name, on the wire or for people, would be the upstream's.
func (m *Missing) Owns(name string) bool {
	for _, prefix := range []string{plainName(m.Upstream) + separator, m.Upstream + "."} {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// Find returns the tool or prompt that a name means: its name on the wire, else its qualified name, else what it can only
// be when the usual mistakes of models are mended: - for _, another case, a missing prefix. nil if there is none.
func (c *Catalog) Find(k Kind, name string) *Item {
	if item := c.byWire[k][name]; item != nil {
		return item
	}
	if item := c.byFolded[k][foldName(name)]; item != nil {
		return item
	}
	return c.byBare[k][foldName(name)]
}

// FindLocal returns the tool or prompt that one upstream offers under a name of its own, nil if there is none.
func (c *Catalog) FindLocal(u *Upstream, k Kind, name string) *Item {
	return c.byLocal[localName{u, k, name}]
}

// WireURI returns the URI that the resource of an upstream has among those of all: its own, unless another upstream has one of
// that URI, or would be asked for it.
func (c *Catalog) WireURI(u *Upstream, uri string) string {
	if c.shared[uri] {
		return qualifiedURI(u.name, uri)
	}
	if other, _ := c.FindResource(uri); other != nil && other != u {
		return qualifiedURI(u.name, uri)
	}
	return uri
}

// FindResource returns the upstream that has the resource of a URI, and the URI that it knows it by. It is nil where nobody lists
// it, nor a template that it matches.
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
