package gateway

import (
	"context"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/near"
	"github.com/dowel-mcp/dowel/mcp"
)

// Through returns the gateway of one upstream that is a gateway itself: what that lists, and which names it knows, is asked of
// it with each request. It may be a name that the hub does not have yet.
func (c *core) Through(name string) *Gateway {
	return &Gateway{core: c, view: &through{&single{hub: c.hub, name: name}}}
}

// through shows an upstream as it is at the moment.
type through struct{ *single }

func (t *through) find(c *hub.Catalog, k hub.Kind, name string) *hub.Item {
	if item := t.single.find(c, k, name); item != nil {
		return item
	}
	u := t.hub.Upstream(t.name)
	if u == nil {
		return nil
	}
	if item := t.mended(c, u, k, name); item != nil {
		return item
	}
	return &hub.Item{Upstream: u, Kind: k, Name: name, Offered: name, Wire: name}
}

// mended returns what only one name can mean when the usual mistakes of models are mended: the header fields of a call are made
// from the definition of what is called.
func (t *through) mended(c *hub.Catalog, u *hub.Upstream, k hub.Kind, name string) *hub.Item {
	its := slices.DeleteFunc(slices.Clone(c.Items(k)), func(item *hub.Item) bool { return item.Upstream != u })
	if i := near.FindVariant(name, len(its), func(i int) string { return its[i].Offered }); i >= 0 {
		return its[i]
	}
	return nil
}

// list passes a list on, page by page.
func (t *through) list(ctx context.Context, g *Gateway, req *mcp.Request) (*mcp.Result, error) {
	u := t.hub.Upstream(t.name)
	if u == nil {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return g.forwardTo(ctx, u, req, req.Params)
}
