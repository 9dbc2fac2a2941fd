// Package catalog merges the tools, prompts and resources of many servers into one list, and finds
// an item by any of its names. Package hub fills a catalog, package gateway serves it.
//
// The type of the servers is a parameter, because package hub defines it and imports this package.
package catalog

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// Upstream is the server of an item, as package hub runs it.
type Upstream interface {
	comparable
	// Name returns the name under which users know the server.
	Name() string
}

// Catalog is a list of everything that all upstreams offer at one moment, immutable once it is
// complete. U is the type of the upstreams, S the type of their states.
type Catalog[U Upstream, S any] struct {
	lists   [Kinds][]*Item[U]
	caches  [Kinds]mcp.Cache
	missing []Missing[S]

	byWire   [Kinds]map[string]*Item[U]
	byLocal  map[localName[U]]*Item[U]
	byFolded [Kinds]map[string]*Item[U] // nil for a name that several items have
	byBare   [Kinds]map[string]*Item[U] // like byFolded, without the server's name
	shared   map[string]bool            // URIs and templates of several upstreams
	servers  map[string]U               // by server name on the wire
}

// localName is a key for an item of one upstream.
type localName[U Upstream] struct {
	upstream U
	kind     Kind
	name     string
}

// Missing is an upstream that should have items in the catalog and has none, with its state.
type Missing[S any] struct {
	// Upstream is the name of the upstream, State its state when the catalog was built.
	Upstream string
	State    S
}

// Lists are the items of one upstream with the caching hints of its lists.
type Lists[U Upstream] struct {
	// Items and Caches hold the items and the caching hint of each kind.
	Items  [Kinds][]*Item[U]
	Caches [Kinds]mcp.Cache
}

// New returns an empty catalog of these upstreams. The caller adds their lists in the same order,
// or says that they are missing, and then calls [Catalog.AssignNames].
func New[U Upstream, S any](upstreams []U) *Catalog[U, S] {
	c := &Catalog[U, S]{shared: map[string]bool{}, servers: map[string]U{}, byLocal: map[localName[U]]*Item[U]{}}
	for k := range Kinds {
		c.byWire[k] = map[string]*Item[U]{}
		c.byFolded[k], c.byBare[k] = map[string]*Item[U]{}, map[string]*Item[U]{}
		c.caches[k] = mcp.Cache{TTL: 1 << 62, Scope: mcp.CachePublic} // narrowed by each upstream's hint
	}
	for _, u := range upstreams {
		c.servers[wirename.Host(u.Name())] = u
	}
	return c
}

// AddMissing records that an upstream has no items because of its state.
func (c *Catalog[U, S]) AddMissing(u U, state S) {
	c.missing = append(c.missing, Missing[S]{u.Name(), state})
}

// AddLists appends the items of an upstream.
func (c *Catalog[U, S]) AddLists(l *Lists[U]) {
	for k := range Kinds {
		if len(l.Items[k]) > 0 {
			c.caches[k] = NarrowestCache(c.caches[k], l.Caches[k])
		}
		c.lists[k] = append(c.lists[k], l.Items[k]...)
	}
}

// AssignNames indexes all items by their names. Resources and templates of several upstreams get
// qualified URIs first. The catalog is immutable from then on.
func (c *Catalog[U, S]) AssignNames() {
	for _, k := range []Kind{Resource, Template} {
		owner := map[string]U{}
		for _, item := range c.lists[k] {
			if other, owned := owner[item.Name]; owned && other != item.Upstream {
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
	for k := range Kinds {
		for _, item := range c.lists[k] {
			c.indexItem(k, item)
		}
	}
}

// indexItem indexes an item by its names. If two items have the same wire name, the first one gets
// it.
func (c *Catalog[U, S]) indexItem(k Kind, item *Item[U]) {
	if _, taken := c.byWire[k][item.WireName]; !taken {
		c.byWire[k][item.WireName] = item
	}
	c.byLocal[localName[U]{item.Upstream, k, item.LocalName}] = item
	if k == Resource || k == Template {
		return // URIs are exact
	}
	indexUnique(c.byFolded[k], foldName(item.WireName), item)
	indexUnique(c.byFolded[k], foldName(item.QualifiedName), item)
	indexUnique(c.byBare[k], foldName(item.LocalName), item)
}

// indexUnique indexes an item by a name, or marks the name as ambiguous with nil if another item
// has it.
func indexUnique[U Upstream](names map[string]*Item[U], name string, item *Item[U]) {
	if other, taken := names[name]; taken && other != item {
		item = nil
	}
	names[name] = item
}

// withQualifiedURI returns a copy of a resource or template under a URI that no other upstream has.
func (item *Item[U]) withQualifiedURI() *Item[U] {
	q := *item
	q.WireName = wirename.ResourceURI(item.Upstream.Name(), item.Name)
	q.Definition = replaceText(item.LocalDefinition, kindTable[item.Kind].key, q.WireName)
	return &q
}

// Items returns the items of a kind in the order of the upstreams. The caller must not change the
// slice.
func (c *Catalog[U, S]) Items(k Kind) []*Item[U] { return c.lists[k] }

// Count returns how many items of a kind an upstream has in the catalog.
func (c *Catalog[U, S]) Count(u U, k Kind) (n int) {
	for _, item := range c.lists[k] {
		if item.Upstream == u {
			n++
		}
	}
	return n
}

// Cache returns the caching hint of a list: the narrowest of all upstreams' hints.
func (c *Catalog[U, S]) Cache(k Kind) mcp.Cache {
	if len(c.lists[k]) == 0 {
		return mcp.Cache{}
	}
	return c.caches[k]
}

// Missing returns the upstreams that should have items in the catalog and have none.
func (c *Catalog[U, S]) Missing() []Missing[S] { return c.missing }

// OwnsName reports whether a tool or prompt of that name, on the wire or qualified, would belong to
// the upstream of the given name.
func OwnsName(upstream, name string) bool {
	for _, prefix := range []string{plainName(upstream) + separator, upstream + "."} {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// Find returns the tool or prompt of a name, or nil. It tries the name on the wire, then the
// qualified name, and then allows for usual mistakes of models: "-" instead of "_", a wrong case, a
// missing server name. It returns nil if a misspelt name fits two items.
func (c *Catalog[U, S]) Find(k Kind, name string) *Item[U] {
	if item := c.byWire[k][name]; item != nil {
		return item
	}
	if item := c.byFolded[k][foldName(name)]; item != nil {
		return item
	}
	return c.byBare[k][foldName(name)]
}

// FindLocal returns the tool or prompt of one upstream with that [Item.LocalName], or nil.
func (c *Catalog[U, S]) FindLocal(u U, k Kind, name string) *Item[U] {
	return c.byLocal[localName[U]{u, k, name}]
}

// WireURI returns the URI of an upstream's resource in the catalog. It is the upstream's own URI
// unless [Catalog.FindResource] would find another upstream for it.
func (c *Catalog[U, S]) WireURI(u U, uri string) string {
	if c.shared[uri] {
		return wirename.ResourceURI(u.Name(), uri)
	}
	var none U
	if other, _ := c.FindResource(uri); other != none && other != u {
		return wirename.ResourceURI(u.Name(), uri)
	}
	return uri
}

// FindResource returns the upstream that has the resource of a URI, and the upstream's own URI. The
// upstream is the zero U if none lists the URI or a template that matches it.
func (c *Catalog[U, S]) FindResource(uri string) (U, string) {
	if host, own, ok := wirename.SplitResourceURI(uri); ok {
		if u, known := c.servers[host]; known {
			return u, own
		}
	}
	if item := c.byWire[Resource][uri]; item != nil {
		return item.Upstream, item.Name
	}
	for _, item := range c.lists[Resource] { // if several upstreams have the URI, the first one gets the request
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
	var none U
	return none, uri
}

// NarrowestCache returns the shorter lifetime and the narrower scope of two hints, for a result
// that combines two others.
func NarrowestCache(a, b mcp.Cache) mcp.Cache {
	a.TTL = min(a.TTL, b.TTL)
	if b.Scope != mcp.CachePublic {
		a.Scope = mcp.CachePrivate
	}
	return a
}
