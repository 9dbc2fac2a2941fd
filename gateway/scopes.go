package gateway

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Scopes returns the scopes that a request needs by [Options.Scopes], as far as its upstream is
// known before it is served. Transports over HTTP call it, as [mcp.Handler] describes. Only
// requests with an access token need scopes.
func (g *Gateway) Scopes(ctx context.Context, p mcp.Principal, method string, params json.RawMessage) []string {
	if g.opts.Scopes == nil || httpwire.AuthorizationFrom(ctx) == nil {
		return nil
	}
	switch method {
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask, mcpwire.MethodTaskResult:
		if upstream := g.upstreamOfTask(p, params); upstream != "" {
			return g.opts.Scopes(upstream)
		}
		return nil
	}
	if u := g.requestedUpstream(method, params); u != nil {
		return g.opts.Scopes(u.Name())
	}
	return nil
}

// upstreamOfTask returns the name of the upstream of the task that a request is about, or "".
func (g *Gateway) upstreamOfTask(p mcp.Principal, params json.RawMessage) string {
	id, _ := rawjson.String(rawjson.Lookup(params, "taskId"))
	if t := g.hosted.findTask(p.ID, id); t != nil {
		return t.bridge.upstream.Name()
	}
	if r, _ := g.hosted.findRecord(context.Background(), p.ID, id); r != nil { // the request sees an error again
		return storedUpstream(r)
	}
	t, err := g.openTask(p, id)
	if err != nil {
		return ""
	}
	return t.Upstream
}

// requestedUpstream returns the upstream of a request by the current catalog, or nil.
func (g *Gateway) requestedUpstream(method string, params json.RawMessage) *hub.Upstream {
	c := g.hub.Catalog()
	find := func(k catalog.Kind, name string) *hub.Upstream {
		if item := g.findItem(c, k, name); item != nil {
			return item.Upstream
		}
		return nil
	}
	name, _ := rawjson.String(rawjson.Lookup(params, "name"))
	switch method {
	case mcp.MethodCallTool:
		if g.search != nil && name == callToolName {
			name, _ = rawjson.String(rawjson.Lookup(rawjson.Lookup(params, "arguments"), "name"))
		}
		return find(catalog.Tool, name)
	case mcp.MethodGetPrompt:
		return find(catalog.Prompt, name)
	case mcp.MethodReadResource, mcpwire.MethodSubscribe:
		uri, _ := rawjson.String(rawjson.Lookup(params, "uri"))
		u, _ := g.findResource(c, uri)
		return u
	}
	return nil
}

// checkScopes returns an error if a request with an access token lacks the scopes of an upstream.
// It is called before anything is sent to an upstream for a request.
func (c *core) checkScopes(ctx context.Context, upstream string, req *mcp.Request) error {
	if c.opts.Scopes == nil || httpwire.AuthorizationFrom(ctx) == nil {
		return nil
	}
	needed := c.opts.Scopes(upstream)
	if req.Principal.HasScopes(needed...) {
		return nil
	}
	return mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s of the server %s needs a token with the scopes %s", req.Method, upstream, strings.Join(needed, " "))
}
