package gateway

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// page is one encoded page of a list.
type page json.RawMessage

// serveList answers a list request from the catalog. The pages of a catalog are encoded once.
func (g *Gateway) serveList(ctx context.Context, req *mcp.Request, k catalog.Kind) (*mcp.Result, error) {
	if g.relays {
		return g.relayList(ctx, req)
	}
	g.awaitUpstreams(ctx)
	c := g.hub.Catalog()
	cached, legacyTasks := &g.pages[k], k == catalog.Tool && req.Revision == mcp.Revision20251125
	if legacyTasks {
		cached = &g.taskPages
	}
	pages := cached.get(c, func() []page { return g.encodePages(c, k, legacyTasks) })
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
		cache.TTL = 0 // missing items may appear at any moment
	}
	return &mcp.Result{Raw: json.RawMessage(pages[n]), Cache: cache}, nil
}

// relayList forwards a list request to the other gateway, which makes the pages.
func (g *Gateway) relayList(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	u := g.hub.Upstream(g.upstreamName)
	if u == nil {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return g.forwardOrExplain(ctx, u, req, req.Params)
}

// encodePages returns the pages of a list, at least one. With legacyTasks, tools have the member
// execution of 2025-11-25.
func (g *Gateway) encodePages(c *itemCatalog, k catalog.Kind, legacyTasks bool) (pages []page) {
	var out []byte
	n := 0
	g.eachDefinition(c, k, legacyTasks, func(raw json.RawMessage) {
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

// openPage begins a page unless it has begun.
func openPage(out []byte, k catalog.Kind) []byte {
	if out != nil {
		return out
	}
	return append(append(append(out, `{"`...), k.ListKey()...), `":[`...)
}

// closePage ends a page. next is the number of the page after it, or 0.
func (g *Gateway) closePage(c *itemCatalog, out []byte, next int) page {
	out = append(out, ']')
	if next > 0 {
		out = append(strconv.AppendInt(append(out, `,"nextCursor":"`...), int64(next), 10), '"')
	}
	if missing := g.encodeMissing(c); missing != nil {
		out = append(append(append(out, `,"_meta":{"`+mcpwire.MetaMissing+`":`...), missing...), '}')
	}
	return append(out, '}')
}

// missingServer is an element of [mcpwire.MetaMissing].
type missingServer struct {
	Server string     `json:"server"`
	Status hub.Status `json:"status"`
	Reason string     `json:"reason,omitzero"`
}

// encodeMissing returns the value of [mcpwire.MetaMissing], or nil if no upstream is missing.
func (g *Gateway) encodeMissing(c *itemCatalog) []byte {
	var all []missingServer
	for _, m := range c.Missing() {
		if g.showsUpstream(m.Upstream) {
			status := m.State.Status
			if status == hub.Starting && m.State.Attempt > 0 {
				status = hub.Failed // another attempt is under way, and the reason is the failure of the last one
			}
			all = append(all, missingServer{m.Upstream, status, describeState(m.State)})
		}
	}
	if all == nil {
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil // cannot happen: the fields are strings
	}
	return raw
}

// describeState says why an upstream is in its state.
func describeState(s hub.State) string {
	if s.Diagnosis != nil && s.Diagnosis.Summary != "" {
		return s.Diagnosis.Summary
	}
	return s.Cause
}
