package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

func (g *Gateway) callTool(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	name, err := member(req, "name")
	if err != nil {
		return nil, err
	}
	if s, ok := g.view.(*searching); ok {
		if res, err, own := s.own(ctx, g, name, req); own {
			return res, err
		}
	}
	if name == StatusTool && g.view.status() {
		return g.status()
	}
	item, missing := g.find(ctx, hub.Tool, name)
	switch {
	case item != nil:
	case missing != nil: // a model can do something else
		return failed(missing.Error()), nil
	default:
		return nil, mcp.InvalidParams("unknown tool: %s%s", name, g.meant(name))
	}
	if err := item.CheckHeaders(req); err != nil {
		return nil, err
	}
	return g.use(ctx, item, req, name)
}

// use calls a tool that the request calls by a name.
func (g *Gateway) use(ctx context.Context, item *hub.Item, req *mcp.Request, name string) (*mcp.Result, error) {
	res, err := g.forward(ctx, item.Upstream, req, rename(req.Params, "name", name, item.Name))
	if why := broken(ctx, item.Upstream, err); why != "" {
		return failed(why), nil
	}
	return g.linked(res, err, item.Upstream)
}

// find returns the tool or prompt of a name, which may be of an upstream that is starting: it is waited for. missing says why
// there is none, where it may be of one whose things are missing.
func (g *Gateway) find(ctx context.Context, k hub.Kind, name string) (item *hub.Item, missing *hub.DownError) {
	c := g.hub.Catalog()
	if item = g.view.find(c, k, name); item != nil {
		return item, nil
	}
	for _, m := range c.Missing() {
		if !g.view.owns(m, name) {
			continue
		}
		if u := g.hub.Upstream(m.Upstream); m.State.Status == hub.Starting && u != nil && u.Settle(ctx) {
			if item = g.view.find(g.hub.Catalog(), k, name); item != nil {
				return item, nil
			}
			m.State = u.State()
		}
		if m.State.Status != hub.Ready {
			return nil, &hub.DownError{Upstream: m.Upstream, State: m.State}
		}
	}
	return nil, nil
}

// broken says why a call has come to nothing, unless the upstream has answered it, or nobody waits for it any more.
func broken(ctx context.Context, u *hub.Upstream, err error) string {
	var answered *mcp.Error
	var lacks *mcp.CapabilityError
	var down *hub.DownError
	switch {
	case err == nil, ctx.Err() != nil, errors.As(err, &answered), errors.As(err, &lacks):
		return ""
	case errors.As(err, &down):
		return down.Error()
	}
	why := err.Error()
	if mask := u.Definition().Mask; mask != nil {
		why = mask(why)
	}
	return "the server " + u.Name() + " has not answered: " + why
}

// failed is a tool's result that says why it has failed.
func failed(text string) *mcp.Result {
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text)}, IsError: true}}
}

func (g *Gateway) getPrompt(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	name, err := member(req, "name")
	if err != nil {
		return nil, err
	}
	item, missing := g.find(ctx, hub.Prompt, name)
	switch {
	case item != nil:
	case missing != nil:
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", missing)
	default:
		return nil, mcp.InvalidParams("unknown prompt: %s", name)
	}
	return g.forwardTo(ctx, item.Upstream, req, rename(req.Params, "name", name, item.Name))
}

// forwardTo is forward with words for what no upstream has answered.
func (g *Gateway) forwardTo(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	res, err := g.forward(ctx, u, req, params)
	if why := broken(ctx, u, err); why != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
	}
	return g.linked(res, err, u)
}

func (g *Gateway) readResource(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	uri, err := member(req, "uri")
	if err != nil {
		return nil, err
	}
	u, own := g.owner(ctx, uri)
	if u == nil {
		return g.readUnlisted(ctx, req, uri)
	}
	return g.forwardTo(ctx, u, req, rename(req.Params, "uri", uri, own))
}

// owner returns whose resource or template a URI is, nil if nobody lists it, and the URI that the upstream knows. It may be of
// one that is starting, which is waited for a little.
func (g *Gateway) owner(ctx context.Context, uri string) (*hub.Upstream, string) {
	u, own := g.view.resource(g.hub.Catalog(), uri)
	if u == nil {
		g.wait(ctx)
		u, own = g.view.resource(g.hub.Catalog(), uri)
	}
	return u, own
}

// readUnlisted asks the upstreams that have resources one after the other: tools link to resources that nobody lists.
func (g *Gateway) readUnlisted(ctx context.Context, req *mcp.Request, uri string) (*mcp.Result, error) {
	for _, u := range g.view.upstreams() {
		if u.State().Status != hub.Ready || u.Info().Capabilities.Resources == nil {
			continue
		}
		res, err := g.forward(ctx, u, req, req.Params)
		var answered *mcp.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &answered) && !notFound(answered) {
			return res, err
		}
	}
	if gone := g.gone(); gone != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "no server that answers has the resource %s; it may be one of %s, which cannot be asked", uri, gone)
	}
	return nil, mcp.ResourceNotFound(uri)
}

// gone names the upstreams whose things are missing; empty where there are none.
func (g *Gateway) gone() string {
	var names []string
	for _, m := range g.hub.Catalog().Missing() {
		if g.view.shows(m.Upstream) {
			names = append(names, m.Upstream)
		}
	}
	return strings.Join(names, ", ")
}

func notFound(e *mcp.Error) bool {
	return e.Code == mcp.CodeResourceNotFound || e.Code == jsonrpc.CodeInvalidParams || e.Code == jsonrpc.CodeMethodNotFound ||
		e.Code == jsonrpc.CodeInternal
}

func (g *Gateway) complete(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	u, ref, err := g.referred(ctx, rawjson.Lookup(req.Params, "ref"))
	if err != nil {
		return nil, err
	}
	if u.State().Status == hub.Ready && !completes(u.Info()) {
		return noCompletions()
	}
	res, err := g.forwardTo(ctx, u, req, rawjson.Replace(req.Params, "ref", ref))
	var answered *mcp.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound {
		return noCompletions()
	}
	return res, err
}

// referred returns whose prompt or resource template a reference is to, and the reference as the upstream knows it.
func (g *Gateway) referred(ctx context.Context, ref json.RawMessage) (*hub.Upstream, json.RawMessage, error) {
	switch kind, _ := rawjson.String(rawjson.Lookup(ref, "type")); kind {
	case mcp.RefPrompt:
		name, _ := rawjson.String(rawjson.Lookup(ref, "name"))
		item, missing := g.find(ctx, hub.Prompt, name)
		switch {
		case item != nil:
			return item.Upstream, rename(ref, "name", name, item.Name), nil
		case missing != nil:
			return nil, nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", missing)
		}
		return nil, nil, mcp.InvalidParams("unknown prompt: %s", name)
	case mcp.RefResource:
		uri, _ := rawjson.String(rawjson.Lookup(ref, "uri"))
		if u, own := g.owner(ctx, uri); u != nil {
			return u, rename(ref, "uri", uri, own), nil
		}
		return nil, nil, mcp.InvalidParams("unknown resource template: %s", uri)
	}
	return nil, nil, mcp.InvalidParams("completion/complete needs params.ref of type %s or %s", mcp.RefPrompt, mcp.RefResource)
}

// completes reports whether a server may complete arguments: in 2024-11-05 there was nothing to declare.
func completes(i hub.Info) bool {
	return i.Capabilities.Completions != nil || i.Revision == mcp.Revision20241105
}

func noCompletions() (*mcp.Result, error) {
	return &mcp.Result{Value: &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}}, nil
}

// member returns a member of a request's params that must be a text.
func member(req *mcp.Request, name string) (string, error) {
	text, ok := rawjson.String(rawjson.Lookup(req.Params, name))
	if !ok || text == "" {
		return "", mcp.InvalidParams("%s needs params.%s, a string", req.Method, name)
	}
	return text, nil
}

// rename returns an object in which a member that says one thing says another.
func rename(object json.RawMessage, name, from, to string) json.RawMessage {
	if from == to {
		return object
	}
	return rawjson.Replace(object, name, rawjson.AppendString(nil, to))
}
