package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// callTool answers tools/call.
func (g *Gateway) callTool(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	name, err := requiredString(req, "name")
	if err != nil {
		return nil, err
	}
	if g.search != nil {
		if res, err, own := g.search.callOwnTool(ctx, g, name, req); own {
			return res, err
		}
	}
	if name == statusToolName && g.showsAll() {
		return g.callStatusTool()
	}
	item, missing := g.awaitItem(ctx, catalog.Tool, name)
	switch {
	case item != nil:
	case missing != nil: // a tool result, so that the model can try something else
		return failedResult(missing.Error()), nil
	default:
		if why := g.withheldReason(catalog.Tool, name); why != "" {
			return failedResult(why), nil
		}
		return nil, mcp.InvalidParams("unknown tool: %s%s", name, g.suggestTool(name))
	}
	if err := item.CheckHeaders(req); err != nil {
		return nil, err
	}
	return g.useTool(ctx, item, req, name)
}

// useTool calls the tool of an item. name is the name in the request.
func (g *Gateway) useTool(ctx context.Context, item *catalogItem, req *mcp.Request, name string) (*mcp.Result, error) {
	if asksForTask(req) && !offersTask(item) { // before the tool has an effect: its result would be lost
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the tool %s runs in no task: call it without task", name)
	}
	res, err := g.forwardRequest(ctx, item.Upstream, req, renameMember(req.Params, "name", name, item.Name))
	if why := describeFailure(ctx, item.Upstream, err); why != "" {
		return failedResult(why), nil
	}
	return g.rewriteLinks(res, err, item.Upstream)
}

// awaitItem returns the tool or prompt of a name. If the name would belong to a starting upstream,
// it waits for it. If the upstream is missing, item is nil and missing says why.
func (g *Gateway) awaitItem(ctx context.Context, k catalog.Kind, name string) (item *catalogItem, missing *hub.DownError) {
	c := g.hub.Catalog()
	if item = g.findItem(c, k, name); item != nil {
		return item, nil
	}
	for _, m := range c.Missing() {
		if !g.mayOwn(m.Upstream, name) {
			continue
		}
		if u := g.hub.Upstream(m.Upstream); m.State.Status == hub.Starting && u != nil && u.Settle(ctx) {
			if item = g.findItem(g.hub.Catalog(), k, name); item != nil {
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

// describeFailure says why a call failed without an answer of the upstream. It returns "" if there
// was an answer, or the client is gone.
func describeFailure(ctx context.Context, u *hub.Upstream, err error) string {
	if err == nil { // first, because the targets of errors.As are allocated
		return ""
	}
	var answered *mcp.Error
	var lacks *mcp.CapabilityError
	var down *hub.DownError
	var login *httpwire.RefusalError
	switch {
	case ctx.Err() != nil, errors.As(err, &answered), errors.As(err, &lacks):
		return ""
	case errors.As(err, &down):
		return down.Error()
	case errors.As(err, &login) && login.NeedsLogin: // the client cannot log in there, and needs no addresses of the server
		text := "the server " + u.Name() + " needs a login, which the user of the gateway must make"
		if u.Definition().LoginFor == nil { // one login for all users
			text += ": dowel login " + u.Name()
		}
		return text
	case errors.As(err, &login):
		return "the server " + u.Name() + " refuses access, and the gateway cannot log in at it"
	}
	why := err.Error()
	if mask := u.Definition().Mask; mask != nil {
		why = mask(why)
	}
	if subject := "the server " + u.Name() + " "; !strings.HasPrefix(why, subject) {
		return subject + "has not answered: " + why
	}
	return why
}

// failedResult returns a tool result with an error for the model.
func failedResult(text string) *mcp.Result {
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text)}, IsError: true}}
}

// getPrompt answers prompts/get.
func (g *Gateway) getPrompt(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	name, err := requiredString(req, "name")
	if err != nil {
		return nil, err
	}
	item, missing := g.awaitItem(ctx, catalog.Prompt, name)
	switch {
	case item != nil:
	case missing != nil:
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", missing)
	default:
		if why := g.withheldReason(catalog.Prompt, name); why != "" {
			return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
		}
		return nil, mcp.InvalidParams("unknown prompt: %s", name)
	}
	return g.forwardOrExplain(ctx, item.Upstream, req, renameMember(req.Params, "name", name, item.Name))
}

// forwardOrExplain is forwardRequest with an error for clients if the upstream did not answer.
func (g *Gateway) forwardOrExplain(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	res, err := g.forwardRequest(ctx, u, req, params)
	if why := describeFailure(ctx, u, err); why != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
	}
	return g.rewriteLinks(res, err, u)
}

// readResource answers resources/read.
func (g *Gateway) readResource(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	uri, err := requiredString(req, "uri")
	if err != nil {
		return nil, err
	}
	u, own := g.resourceOwner(ctx, uri)
	if u == nil {
		return g.readUnlisted(ctx, req, uri)
	}
	if why := withheldTemplate(g.hub.Catalog(), u, own); why != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
	}
	return g.forwardOrExplain(ctx, u, req, renameMember(req.Params, "uri", uri, own))
}

// resourceOwner returns the upstream that lists the resource of a URI, and the upstream's own URI.
// The upstream is nil if none lists it. Starting upstreams get a short time to become ready first.
func (g *Gateway) resourceOwner(ctx context.Context, uri string) (*hub.Upstream, string) {
	u, own := g.findResource(g.hub.Catalog(), uri)
	if u == nil {
		g.awaitUpstreams(ctx)
		u, own = g.findResource(g.hub.Catalog(), uri)
	}
	return u, own
}

// readUnlisted asks the upstreams with resources one after the other. Tools link to resources that
// no list has.
func (g *Gateway) readUnlisted(ctx context.Context, req *mcp.Request, uri string) (*mcp.Result, error) {
	withheld := ""
	for _, u := range g.shownUpstreams() {
		if u.State().Status != hub.Ready || u.Server().Capabilities.Resources == nil {
			continue
		}
		if why := withheldTemplate(g.hub.Catalog(), u, uri); why != "" {
			withheld = why
			continue
		}
		res, err := g.forwardRequest(ctx, u, req, req.Params)
		var answered *mcp.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &answered) && !isNotFound(answered) {
			return res, err
		}
	}
	if withheld != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", withheld)
	}
	if missing := g.missingNames(); missing != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "no server that answers has the resource %s; it may be one of %s, which cannot be asked", uri, missing)
	}
	return nil, mcp.ResourceNotFound(uri)
}

// missingNames returns the names of missing upstreams, separated by commas.
func (g *Gateway) missingNames() string {
	var names []string
	for _, m := range g.hub.Catalog().Missing() {
		if g.showsUpstream(m.Upstream) {
			names = append(names, m.Upstream)
		}
	}
	return strings.Join(names, ", ")
}

// isNotFound reports whether an upstream's error means that it lacks a resource. Servers use
// several codes for that.
func isNotFound(e *mcp.Error) bool {
	return e.Code == mcp.CodeResourceNotFound || e.Code == jsonrpc.CodeInvalidParams || e.Code == jsonrpc.CodeMethodNotFound ||
		e.Code == jsonrpc.CodeInternal
}

// completeArgument answers completion/complete.
func (g *Gateway) completeArgument(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	u, ref, err := g.resolveReference(ctx, rawjson.Lookup(req.Params, "ref"))
	if err != nil {
		return nil, err
	}
	if u.State().Status == hub.Ready && !mayComplete(u.Server()) {
		return noCompletions()
	}
	res, err := g.forwardOrExplain(ctx, u, req, rawjson.Replace(req.Params, "ref", ref))
	var answered *mcp.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound {
		return noCompletions()
	}
	return res, err
}

// resolveReference returns the upstream of a referenced prompt or resource template, and the
// reference under the upstream's own name.
func (g *Gateway) resolveReference(ctx context.Context, ref json.RawMessage) (*hub.Upstream, json.RawMessage, error) {
	switch kind, _ := rawjson.String(rawjson.Lookup(ref, "type")); kind {
	case mcpwire.RefPrompt:
		name, _ := rawjson.String(rawjson.Lookup(ref, "name"))
		item, missing := g.awaitItem(ctx, catalog.Prompt, name)
		switch {
		case item != nil:
			return item.Upstream, renameMember(ref, "name", name, item.Name), nil
		case missing != nil:
			return nil, nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", missing)
		}
		return nil, nil, mcp.InvalidParams("unknown prompt: %s", name)
	case mcpwire.RefResource:
		uri, _ := rawjson.String(rawjson.Lookup(ref, "uri"))
		if u, own := g.resourceOwner(ctx, uri); u != nil {
			return u, renameMember(ref, "uri", uri, own), nil
		}
		return nil, nil, mcp.InvalidParams("unknown resource template: %s", uri)
	}
	return nil, nil, mcp.InvalidParams("completion/complete needs params.ref of type %s or %s", mcpwire.RefPrompt, mcpwire.RefResource)
}

// mayComplete reports whether a server may complete arguments. 2024-11-05 had no capability for it.
func mayComplete(s client.Server) bool {
	return s.Capabilities.Completions != nil || s.Revision == mcp.Revision20241105
}

// noCompletions returns an empty completion.
func noCompletions() (*mcp.Result, error) {
	return &mcp.Result{Value: &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}}, nil
}

// requiredString returns a member of a request's params that must be a string.
func requiredString(req *mcp.Request, name string) (string, error) {
	text, ok := rawjson.String(rawjson.Lookup(req.Params, name))
	if !ok || text == "" {
		return "", mcp.InvalidParams("%s needs params.%s, a string", req.Method, name)
	}
	return text, nil
}

// renameMember returns an object with another string in a member. If the string is the same, it
// returns the object itself.
func renameMember(object json.RawMessage, name, from, to string) json.RawMessage {
	if from == to {
		return object
	}
	return rawjson.Replace(object, name, rawjson.AppendString(nil, to))
}
