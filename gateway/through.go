package gateway

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
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
	return &hub.Item{Upstream: u, Kind: k, Name: name, Offered: name, Wire: name}
}

// list passes a list on, page by page.
func (t *through) list(ctx context.Context, g *Gateway, req *mcp.Request) (*mcp.Result, error) {
	u := t.hub.Upstream(t.name)
	if u == nil {
		return nil, mcp.MethodNotFound(req.Method)
	}
	params := json.RawMessage(nil)
	if cursor := rawjson.Lookup(req.Params, "cursor"); cursor != nil {
		params = rawjson.Set([]byte("{}"), "cursor", cursor)
	}
	return g.forwardTo(ctx, u, req, params)
}
