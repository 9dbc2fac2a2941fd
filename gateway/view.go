package gateway

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/near"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/internal/wirename"
)

type (
	itemCatalog = catalog.Catalog[*hub.Upstream, hub.State]
	catalogItem = catalog.Item[*hub.Upstream]
)

// A gateway shows all upstreams under qualified names or, if upstreamName is set, one upstream
// under its own names. The methods of this file are the only ones that differ between the two.

// showsAll reports whether the gateway shows all upstreams under qualified names.
func (g *Gateway) showsAll() bool { return g.upstreamName == "" }

// showsUpstream reports whether the gateway shows the upstream of that name.
func (g *Gateway) showsUpstream(name string) bool { return g.showsAll() || name == g.upstreamName }

// shownUpstreams returns the upstreams that the gateway shows, in the hub's order.
func (g *Gateway) shownUpstreams() []*hub.Upstream {
	if g.showsAll() {
		return g.hub.Upstreams()
	}
	if u := g.hub.Upstream(g.upstreamName); u != nil {
		return []*hub.Upstream{u}
	}
	return nil
}

// eachDefinition calls yield with each definition of a kind, under the gateway's names, in the
// order of the list.
func (g *Gateway) eachDefinition(c *itemCatalog, k catalog.Kind, legacyTasks bool, yield func(raw json.RawMessage)) {
	show := func(item *catalogItem, raw json.RawMessage) {
		if legacyTasks && offersTask(item) {
			raw = rawjson.Set(raw, "execution", []byte(`{"taskSupport":"optional"}`))
		}
		yield(raw)
	}
	switch {
	case !g.showsAll():
		for _, item := range c.Items(k) {
			if item.Upstream.Name() == g.upstreamName {
				show(item, item.LocalDefinition)
			}
		}
		return
	case k == catalog.Tool && g.search != nil:
		g.search.eachTool(c, yield)
		return
	}
	for _, item := range c.Items(k) {
		if k == catalog.Resource || k == catalog.Template {
			yield(item.DefinitionWithServer())
			continue
		}
		show(item, item.Definition)
	}
	if k == catalog.Tool {
		yield(statusTool)
	}
}

// shownName returns the gateway's name of a tool or prompt.
func (g *Gateway) shownName(item *catalogItem) string {
	if g.showsAll() {
		return item.WireName
	}
	return item.LocalName
}

// findItem returns the tool or prompt of a name, or nil. A relay returns an item for every name:
// only the other gateway knows its names, so an unknown name goes there as it is.
func (g *Gateway) findItem(c *itemCatalog, k catalog.Kind, name string) *catalogItem {
	if g.showsAll() {
		return c.Find(k, name)
	}
	u := g.hub.Upstream(g.upstreamName)
	item := c.FindLocal(u, k, name)
	if item != nil || !g.relays || u == nil {
		return item
	}
	if item := findMisspelled(c, u, k, name); item != nil {
		return item
	}
	return &catalogItem{Upstream: u, Kind: k, Name: name, LocalName: name, WireName: name}
}

// findMisspelled returns the upstream's tool or prompt that a name with a usual mistake of models
// means, or nil. The header fields of a call come from the definition, so the mistake must be
// repaired before the call is forwarded.
func findMisspelled(c *itemCatalog, u *hub.Upstream, k catalog.Kind, name string) *catalogItem {
	items := slices.DeleteFunc(slices.Clone(c.Items(k)), func(item *catalogItem) bool { return item.Upstream != u })
	if i := near.FindVariant(name, len(items), func(i int) string { return items[i].LocalName }); i >= 0 {
		return items[i]
	}
	return nil
}

// findResource returns the upstream that has the resource of a URI, nil if none lists it, and the
// upstream's own URI.
func (g *Gateway) findResource(c *itemCatalog, uri string) (*hub.Upstream, string) {
	if g.showsAll() {
		return c.FindResource(uri)
	}
	return g.hub.Upstream(g.upstreamName), uri
}

// shownURI returns the gateway's URI of an upstream's resource.
func (g *Gateway) shownURI(c *itemCatalog, u *hub.Upstream, uri string) string {
	if g.showsAll() {
		return c.WireURI(u, uri)
	}
	return uri
}

// mayOwn reports whether a tool or prompt of that name would belong to an upstream that is
// missing from the catalog.
func (g *Gateway) mayOwn(upstream, name string) bool {
	if g.showsAll() {
		return catalog.OwnsName(upstream, name)
	}
	return upstream == g.upstreamName
}

// withheldReason says why an upstream's tool or prompt of that name is not offered. It returns ""
// if no upstream withholds one.
func (g *Gateway) withheldReason(k catalog.Kind, name string) string {
	for _, u := range g.shownUpstreams() {
		for _, q := range u.Quarantined() {
			shown := q.LocalName
			if g.showsAll() && shown != "" {
				shown = wirename.Of(u.Name(), shown)
			}
			if q.Kind == k && shown != "" && (shown == name || g.showsAll() && u.Name()+"."+q.LocalName == name) {
				return fmt.Sprintf("the %s %s.%s is not offered: %s", k, u.Name(), q.LocalName, q.Reason)
			}
		}
	}
	return ""
}

// withheldTemplate says why an upstream's resource may not be read: it is not listed, and only a
// template whose changed definition is withheld has its URI. It returns "" if the resource may be
// read.
func withheldTemplate(c *itemCatalog, u *hub.Upstream, uri string) (why string) {
	for _, change := range u.ChangedDefinitions() {
		if change.Kind != definitions.Template || !uritemplate.Matches(change.Name, uri) {
			continue
		}
		for _, q := range u.Quarantined() {
			if q.Kind == catalog.Template && q.Name == change.Name {
				why = fmt.Sprintf("%s of %s is not offered: %s", change.Name, u.Name(), q.Reason)
			}
		}
	}
	if why == "" {
		return ""
	}
	isListed := func(item *catalogItem) bool { return item.Upstream == u && item.Name == uri }
	isOffered := func(item *catalogItem) bool { return item.Upstream == u && uritemplate.Matches(item.Name, uri) }
	if slices.ContainsFunc(c.Items(catalog.Resource), isListed) || slices.ContainsFunc(c.Items(catalog.Template), isOffered) {
		return ""
	}
	return why
}
