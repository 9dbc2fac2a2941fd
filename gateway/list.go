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

// list answers a list from the catalog, whose pages are encoded once.
func (g *Gateway) list(ctx context.Context, req *mcp.Request, k hub.Kind) (*mcp.Result, error) {
	if t, ok := g.view.(*through); ok {
		return t.list(ctx, g, req)
	}
	g.wait(ctx)
	c := g.hub.Catalog()
	pages := g.view.pages()[k].get(c, func() []page { return g.encode(c, k) })
	n := 0
	if cursor := rawjson.Lookup(req.Params, "cursor"); cursor != nil && !rawjson.IsNull(cursor) {
		text, _ := rawjson.String(cursor)
		var err error
		if n, err = strconv.Atoi(text); err != nil || n <= 0 || n >= len(pages) {
			return nil, mcp.InvalidParams("%s: the cursor %s is not one of this server's, or the list has become shorter: begin again without one",
				req.Method, cursor)
		}
	}
	cache := g.view.cache(c, k)
	if g.missing(c) != nil {
		cache.TTL = 0 // what is missing may be there at any moment
	}
	return &mcp.Result{Raw: json.RawMessage(pages[n]), Cache: cache}, nil
}

// encode makes the pages of a list; there is at least one.
func (g *Gateway) encode(c *hub.Catalog, k hub.Kind) (pages []page) {
	var out []byte
	n := 0
	g.view.items(c, k, func(raw json.RawMessage) {
		if n == g.opts.PageSize {
			pages = append(pages, g.close(c, out, len(pages)+1))
			out, n = nil, 0
		}
		if out = open(out, k); n > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		n++
	})
	return append(pages, g.close(c, open(out, k), 0))
}

func open(out []byte, k hub.Kind) []byte {
	if out != nil {
		return out
	}
	return append(append(append(out, `{"`...), k.ListKey()...), `":[`...)
}

// close ends a page behind which the n-th comes; 0: none.
func (g *Gateway) close(c *hub.Catalog, out []byte, n int) page {
	out = append(out, ']')
	if n > 0 {
		out = append(strconv.AppendInt(append(out, `,"nextCursor":"`...), int64(n), 10), '"')
	}
	if missing := g.missing(c); missing != nil {
		out = append(append(append(out, `,"_meta":{"`+MetaMissing+`":`...), missing...), '}')
	}
	return append(out, '}')
}

// absence is an upstream whose things are missing.
type absence struct {
	Server string     `json:"server"`
	Status hub.Status `json:"status"`
	Reason string     `json:"reason,omitzero"`
}

// missing encodes the upstreams whose things are not in the lists; nil if there are none.
func (g *Gateway) missing(c *hub.Catalog) []byte {
	var all []absence
	for _, m := range c.Missing() {
		if g.view.shows(m.Upstream) {
			all = append(all, absence{m.Upstream, m.State.Status, reason(m.State)})
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

// reason says why an upstream is as it is.
func reason(s hub.State) string {
	if s.Diagnosis != nil && s.Diagnosis.Summary != "" {
		return s.Diagnosis.Summary
	}
	return s.Cause
}
