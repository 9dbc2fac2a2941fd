package gateway

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// MetaMissing is the key of a list's _meta under which stand the upstreams whose things are not in it: an array of objects
// with server, status and reason.
const MetaMissing = "dowel/missing"

// page is one page of a list, encoded.
type page json.RawMessage

// serveList answers a list from the catalog, whose pages are encoded once.
func (g *Gateway) serveList(ctx context.Context, req *mcp.Request, k hub.Kind) (*mcp.Result, error) {
	if g.relays {
		return g.relayList(ctx, req)
	}
	g.awaitUpstreams(ctx)
	c := g.hub.Catalog()
	pages := g.pages[k].get(c, func() []page { return g.encodePages(c, k) })
	n := 0
	if cursor := rawjson.Lookup(req.Params, "cursor"); cursor != nil && !rawjson.IsNull(cursor) {
		text, _ := rawjson.String(cursor)
		var err error
		if n, err = strconv.Atoi(text); err != nil || n <= 0 || n >= len(pages) {
			return nil, mcp.InvalidParams("%s: the cursor %s is not one of this server's, or the list has become shorter: begin again without one",
				req.Method, cursor)
		}
	}
	cache := c.Cache(k)
	if g.encodeMissing(c) != nil {
		cache.TTL = 0 // what is missing may be there at any moment
	}
	return &mcp.Result{Raw: json.RawMessage(pages[n]), Cache: cache}, nil
}

// relayList forwards a list request, so each page is the other gateway's.
func (g *Gateway) relayList(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	u := g.hub.Upstream(g.upstreamName)
	if u == nil {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return g.forwardOrExplain(ctx, u, req, req.Params)
}

// encodePages makes the pages of a list; there is at least one.
func (g *Gateway) encodePages(c *hub.Catalog, k hub.Kind) (pages []page) {
	var out []byte
	n := 0
	g.eachDefinition(c, k, func(raw json.RawMessage) {
		if n == g.opts.PageSize {
			pages = append(pages, g.closePage(c, out, len(pages)+1))
			out, n = nil, 0
		}
		if out = openPage(out, k); n > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		n++
	})
	return append(pages, g.closePage(c, openPage(out, k), 0))
}

func openPage(out []byte, k hub.Kind) []byte {
	if out != nil {
		return out
	}
	return append(append(append(out, `{"`...), k.ListKey()...), `":[`...)
}

// closePage ends a page behind which the n-th comes; 0: none.
func (g *Gateway) closePage(c *hub.Catalog, out []byte, n int) page {
	out = append(out, ']')
	if n > 0 {
		out = append(strconv.AppendInt(append(out, `,"nextCursor":"`...), int64(n), 10), '"')
	}
	if missing := g.encodeMissing(c); missing != nil {
		out = append(append(append(out, `,"_meta":{"`+MetaMissing+`":`...), missing...), '}')
	}
	return append(out, '}')
}

// missingServer is an upstream whose things are missing.
type missingServer struct {
	Server string     `json:"server"`
	Status hub.Status `json:"status"`
	Reason string     `json:"reason,omitzero"`
}

// encodeMissing encodes the upstreams whose things are not in the lists; nil if there are none.
func (g *Gateway) encodeMissing(c *hub.Catalog) []byte {
	var all []missingServer
	for _, m := range c.Missing() {
		if g.showsUpstream(m.Upstream) {
			all = append(all, missingServer{m.Upstream, m.State.Status, describeState(m.State)})
		}
	}
	if all == nil {
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil // there is nothing in it that cannot be encoded
	}
	return raw
}

// describeState says why an upstream is as it is.
func describeState(s hub.State) string {
	if s.Diagnosis != nil && s.Diagnosis.Summary != "" {
		return s.Diagnosis.Summary
	}
	return s.Cause
}
