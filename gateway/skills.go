package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// The gateway lists the skills of all upstreams. In the gateway of all, their URIs and the URIs of
// their files name the upstream, so that skills of two upstreams are never taken for one another,
// and reading needs no list. Digests and frontmatter pass unchanged. The gateway does not offer
// resources/directory/read: an entry has all files of its skill.

// skillUpstreams returns the shown upstreams that are ready and offer skills, in the hub's order.
func (g *Gateway) skillUpstreams() []*hub.Upstream {
	return slices.DeleteFunc(slices.Clone(g.shownUpstreams()), func(u *hub.Upstream) bool {
		return u.State().Status != hub.Ready || !mcpwire.OffersSkills(u.Server().Capabilities)
	})
}

// skillCursor is the place at which a page of skills begins: the beginning of an upstream's list,
// or one of its cursors.
type skillCursor struct {
	upstream string
	own      *string
}

// encode returns the cursor's text.
func (c skillCursor) encode() string {
	if c.own == nil {
		return c.upstream + "\n"
	}
	return c.upstream + "\n=" + *c.own
}

func parseSkillCursor(params json.RawMessage) (c skillCursor, isGiven, ok bool) {
	raw := rawjson.Lookup(params, "cursor")
	if raw == nil || rawjson.IsNull(raw) {
		return c, false, true
	}
	text, _ := rawjson.String(raw)
	upstream, own, ok := strings.Cut(text, "\n")
	c.upstream = upstream
	if own, hasOwn := strings.CutPrefix(own, "="); hasOwn {
		c.own = &own
	} else if own != "" {
		ok = false
	}
	return c, true, ok
}

// listSkills answers skills/list. A page holds one page of one upstream.
func (g *Gateway) listSkills(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if g.relays {
		return g.relayList(ctx, req)
	}
	g.awaitUpstreams(ctx)
	upstreams := g.skillUpstreams()
	from, isGiven, ok := parseSkillCursor(req.Params)
	first := 0
	if isGiven {
		first = slices.IndexFunc(upstreams, func(u *hub.Upstream) bool { return u.Name() == from.upstream })
	}
	if first < 0 || !ok {
		return nil, mcp.InvalidParams("%s: the cursor is not one of this server's, or its server is gone: begin again without one", req.Method)
	}
	failed := false
	for i, u := range upstreams[first:] {
		resp, err := g.requestSkills(ctx, u, req, from.own)
		if err != nil && (ctx.Err() != nil || from.own != nil) {
			return clientError(err)
		}
		if from.own = nil; err != nil { // the skills of the others are listed
			g.opts.Logger.WarnContext(ctx, "a server does not list its skills", "server", u.Name(), "err", cmp.Or(describeFailure(ctx, u, err), err.Error()))
			failed = true
			continue
		}
		var next *skillCursor
		if cursor, more := rawjson.String(rawjson.Lookup(resp.Raw, "nextCursor")); more {
			next = &skillCursor{u.Name(), &cursor}
		} else if following := upstreams[first+i+1:]; len(following) > 0 {
			next = &skillCursor{following[0].Name(), nil}
		}
		res := &mcp.Result{Raw: g.skillPage(u, resp.Raw, next), Cache: resp.Cache}
		if failed {
			res.Cache.TTL = 0
		}
		return res, nil
	}
	return &mcp.Result{Raw: json.RawMessage(`{"skills":[]}`)}, nil
}

// requestSkills requests a page of an upstream's skills. A nil cursor means the first.
func (g *Gateway) requestSkills(ctx context.Context, u *hub.Upstream, req *mcp.Request, cursor *string) (*mcp.Response, error) {
	params := json.RawMessage("{}")
	if cursor != nil {
		params = append(rawjson.AppendString([]byte(`{"cursor":`), *cursor), '}')
	}
	return u.RoundTrip(ctx, callerOf(req), upstreamRequest(req, params, nil))
}

// skillPage returns a page of an upstream's skills for the client. next may be nil.
func (g *Gateway) skillPage(u *hub.Upstream, page json.RawMessage, next *skillCursor) json.RawMessage {
	out := []byte(`{"skills":[`)
	n := 0
	if skills := rawjson.Lookup(page, "skills"); len(skills) > 0 && skills[0] == '[' {
		for it := rawjson.Array(skills); it.Next(); {
			if !rawjson.IsObject(it.Value) {
				continue
			}
			if n++; n > 1 {
				out = append(out, ',')
			}
			out = append(out, g.shownSkill(u, it.Value, g.showsAll())...)
		}
	}
	out = append(out, ']')
	if next != nil {
		out = rawjson.AppendString(append(out, `,"nextCursor":`...), next.encode())
	}
	return append(out, '}')
}

// shownSkill returns an entry for the client: with the name of the upstream in its _meta, and, if
// isQualified, with URIs that name the upstream too.
func (g *Gateway) shownSkill(u *hub.Upstream, entry json.RawMessage, isQualified bool) json.RawMessage {
	if !g.showsAll() {
		return entry
	}
	name := rawjson.AppendString(nil, u.Name())
	entry = mcpwire.SetMeta(entry, wirename.MetaServer, name)
	if !isQualified {
		return entry
	}
	qualify := func(object json.RawMessage) json.RawMessage {
		uri, ok := rawjson.String(rawjson.Lookup(object, "uri"))
		if !ok {
			return object
		}
		return renameMember(object, "uri", uri, wirename.ResourceURI(u.Name(), uri))
	}
	entry = qualify(entry)
	if files := rawjson.Lookup(entry, "resources"); len(files) == 0 || files[0] != '[' {
		return entry
	}
	return mapMember(entry, "resources", func(file json.RawMessage) json.RawMessage {
		if !rawjson.IsObject(file) {
			return file
		}
		return qualify(file)
	})
}

// getSkill answers skills/get. The entry has the form of URIs that the request has.
func (g *Gateway) getSkill(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	uri, err := requiredString(req, "uri")
	if err != nil {
		return nil, err
	}
	if g.relays {
		return g.relayList(ctx, req)
	}
	u, own := g.resourceOwner(ctx, uri)
	candidates := []*hub.Upstream{u}
	if u == nil {
		candidates = g.skillUpstreams()
	}
	for _, u := range candidates {
		if u.State().Status == hub.Ready && !mcpwire.OffersSkills(u.Server().Capabilities) {
			continue
		}
		res, err := g.forwardRequest(ctx, u, req, renameMember(req.Params, "uri", uri, own))
		if err == nil {
			return g.skillResult(u, res, own != uri), nil
		}
		if why := describeFailure(ctx, u, err); why != "" {
			return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
		}
		if len(candidates) == 1 || ctx.Err() != nil {
			return nil, err
		}
	}
	return nil, mcp.InvalidParams("no skill is served at %s: skills/list lists the skills", uri)
}

// skillResult returns the result of skills/get for the client.
func (g *Gateway) skillResult(u *hub.Upstream, res *mcp.Result, isQualified bool) *mcp.Result {
	other := *res
	other.Raw = mapMember(res.Raw, "skill", func(entry json.RawMessage) json.RawMessage {
		if !rawjson.IsObject(entry) {
			return entry
		}
		return g.shownSkill(u, entry, isQualified)
	})
	return &other
}
