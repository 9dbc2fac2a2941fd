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
	c := g.hub.Catalog()
	item := g.view.find(c, hub.Tool, name)
	switch {
	case item == nil && name == StatusTool && g.view.status():
		return g.status()
	case item == nil:
		return g.noTool(c, name)
	}
	if err := item.CheckHeaders(req); err != nil {
		return nil, err
	}
	res, err := g.forward(ctx, item.Upstream, req, rename(req.Params, "name", name, item.Name))
	var down *hub.DownError
	if errors.As(err, &down) {
		return failed(down.Error()), nil
	}
	return res, err
}

// noTool says why there is no tool of that name, so that a model can do something else.
func (g *Gateway) noTool(c *hub.Catalog, name string) (*mcp.Result, error) {
	for _, m := range c.Missing() {
		if g.view.shows(m.Upstream) && (strings.HasPrefix(name, m.Upstream+"__") || strings.HasPrefix(name, m.Upstream+".")) {
			return failed((&hub.DownError{Upstream: m.Upstream, State: m.State}).Error()), nil
		}
	}
	return nil, mcp.InvalidParams("unknown tool: %s", name)
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
	item := g.view.find(g.hub.Catalog(), hub.Prompt, name)
	if item == nil {
		return nil, mcp.InvalidParams("unknown prompt: %s", name)
	}
	res, err := g.forward(ctx, item.Upstream, req, rename(req.Params, "name", name, item.Name))
	return res, said(err)
}

func (g *Gateway) readResource(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	uri, err := member(req, "uri")
	if err != nil {
		return nil, err
	}
	u, own := g.view.resource(g.hub.Catalog(), uri)
	if u == nil {
		return g.readUnlisted(ctx, req, uri)
	}
	res, err := g.forward(ctx, u, req, rename(req.Params, "uri", uri, own))
	return res, said(err)
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
			return res, said(err)
		}
	}
	return nil, mcp.ResourceNotFound(uri)
}

func notFound(e *mcp.Error) bool {
	return e.Code == mcp.CodeResourceNotFound || e.Code == jsonrpc.CodeInvalidParams || e.Code == jsonrpc.CodeMethodNotFound ||
		e.Code == jsonrpc.CodeInternal
}

func (g *Gateway) complete(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	ref := rawjson.Lookup(req.Params, "ref")
	c := g.hub.Catalog()
	var u *hub.Upstream
	var own json.RawMessage
	switch kind, _ := rawjson.String(rawjson.Lookup(ref, "type")); kind {
	case mcp.RefPrompt:
		name, _ := rawjson.String(rawjson.Lookup(ref, "name"))
		item := g.view.find(c, hub.Prompt, name)
		if item == nil {
			return nil, mcp.InvalidParams("unknown prompt: %s", name)
		}
		u, own = item.Upstream, rename(ref, "name", name, item.Name)
	case mcp.RefResource:
		uri, _ := rawjson.String(rawjson.Lookup(ref, "uri"))
		owner, known := g.view.resource(c, uri)
		if owner == nil {
			return nil, mcp.InvalidParams("unknown resource template: %s", uri)
		}
		u, own = owner, rename(ref, "uri", uri, known)
	default:
		return nil, mcp.InvalidParams("completion/complete needs params.ref of type %s or %s", mcp.RefPrompt, mcp.RefResource)
	}
	if u.State().Status == hub.Ready && u.Info().Capabilities.Completions == nil {
		return &mcp.Result{Value: &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}}, nil
	}
	res, err := g.forward(ctx, u, req, rawjson.Replace(req.Params, "ref", own))
	return res, said(err)
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

// said makes an error that a client may read of that of an upstream that cannot be called.
func said(err error) error {
	var down *hub.DownError
	if errors.As(err, &down) {
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", down.Error())
	}
	return err
}
