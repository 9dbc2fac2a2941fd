package gateway

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
)

// view is what of the hub a gateway shows, and under which names.
type view interface {
	// items calls yield with each definition of a kind, under the view's name.
	items(c *hub.Catalog, k hub.Kind, yield func(raw json.RawMessage))
	// called is what the view calls a tool or prompt.
	called(item *hub.Item) string
	// cache is the hint for the list of a kind.
	cache(c *hub.Catalog, k hub.Kind) mcp.Cache
	// find returns the tool or prompt of a name, nil if there is none.
	find(c *hub.Catalog, k hub.Kind, name string) *hub.Item
	// resource returns whose resource a URI is, nil if nobody lists it, and the URI that the upstream knows.
	resource(c *hub.Catalog, uri string) (*hub.Upstream, string)
	// wire returns the URI under which the view has the resource of an upstream.
	wire(c *hub.Catalog, u *hub.Upstream, uri string) string
	// upstreams are those whose things are shown.
	upstreams() []*hub.Upstream
	// owns reports whether a tool or prompt of that name would be of an upstream whose things are missing.
	owns(m hub.Missing, name string) bool
	// shows reports whether the things of an upstream are shown.
	shows(name string) bool
	// status reports whether the tool is there that tells how the upstreams are.
	status() bool

	pages() *[4]lazily[[]page]
}

// merged shows all upstreams, under qualified names.
type merged struct {
	hub  *hub.Hub
	made [4]lazily[[]page]
}

func (m *merged) items(c *hub.Catalog, k hub.Kind, yield func(json.RawMessage)) {
	for _, item := range c.Items(k) {
		yield(item.Definition)
	}
	if k == hub.Tool {
		yield(statusTool)
	}
}

func (m *merged) called(item *hub.Item) string { return item.WireName }

func (m *merged) cache(c *hub.Catalog, k hub.Kind) mcp.Cache { return c.Cache(k) }

func (m *merged) find(c *hub.Catalog, k hub.Kind, name string) *hub.Item { return c.Find(k, name) }

func (m *merged) resource(c *hub.Catalog, uri string) (*hub.Upstream, string) { return c.FindResource(uri) }

func (m *merged) wire(c *hub.Catalog, u *hub.Upstream, uri string) string { return c.WireURI(u, uri) }

func (m *merged) upstreams() []*hub.Upstream { return m.hub.Upstreams() }

func (m *merged) owns(gone hub.Missing, name string) bool { return gone.Owns(name) }

func (m *merged) shows(string) bool { return true }

func (m *merged) status() bool { return true }

func (m *merged) pages() *[4]lazily[[]page] { return &m.made }

// single shows one upstream under its own names.
type single struct {
	hub  *hub.Hub
	name string
	made [4]lazily[[]page]
}

func (s *single) items(c *hub.Catalog, k hub.Kind, yield func(json.RawMessage)) {
	for _, item := range c.Items(k) {
		if item.Upstream.Name() == s.name {
			yield(item.LocalDefinition)
		}
	}
}

func (s *single) called(item *hub.Item) string { return item.LocalName }

func (s *single) cache(c *hub.Catalog, k hub.Kind) mcp.Cache { return c.Cache(k) }

func (s *single) find(c *hub.Catalog, k hub.Kind, name string) *hub.Item {
	return c.FindLocal(s.hub.Upstream(s.name), k, name)
}

func (s *single) resource(_ *hub.Catalog, uri string) (*hub.Upstream, string) {
	return s.hub.Upstream(s.name), uri
}

func (s *single) wire(_ *hub.Catalog, _ *hub.Upstream, uri string) string { return uri }

func (s *single) upstreams() []*hub.Upstream {
	if u := s.hub.Upstream(s.name); u != nil {
		return []*hub.Upstream{u}
	}
	return nil
}

func (s *single) owns(gone hub.Missing, _ string) bool { return gone.Upstream == s.name }

func (s *single) shows(name string) bool { return name == s.name }

func (s *single) status() bool { return false }

func (s *single) pages() *[4]lazily[[]page] { return &s.made }
