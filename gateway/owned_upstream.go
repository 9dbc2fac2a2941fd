package gateway

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

func init() {
	hublink.ServeUpstream = func(g any, name string) any { return g.(*Gateway).serveReplicas(name) }
}

// ownedUpstream serves an upstream to the hub of another replica. That hub applies the rules of the
// server's entry, so here all names are the server's own. Questions of a legacy server wait here,
// and the retries of the other gateway bring the answers. A client may also repeat such a call at
// this replica, or ask it for the state of a task: see [Gateway.continueOwned] and
// [Gateway.serveOwnedTask].
type ownedUpstream struct{ *Gateway }

// serveReplicas returns the handler of an upstream for the hubs of other replicas.
func (c *core) serveReplicas(name string) *ownedUpstream {
	return &ownedUpstream{&Gateway{core: c, upstreamName: name, relays: true, isOwner: true}}
}

// runsInCluster reports whether one replica runs an upstream for all.
func runsInCluster(u *hub.Upstream) bool {
	_, ok := u.Definition().Target.(*sharedserver.Target)
	return ok
}

// ServeMCP implements [mcp.Handler].
func (o *ownedUpstream) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	u := o.hub.Upstream(o.upstreamName)
	if u == nil {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s: the replica has no server %s any more", req.Method, o.upstreamName)
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return describeUpstream(u)
	case mcp.MethodCallTool:
		name, err := requiredString(req, "name")
		if err != nil {
			return nil, err
		}
		return o.useTool(ctx, &catalogItem{Upstream: u, Kind: catalog.Tool, Name: name, LocalName: name, WireName: name}, req, name)
	}
	return o.Gateway.ServeMCP(ctx, req)
}

// continueOwned continues a call that this gateway has parked for a client of another replica,
// whose retry has come here. The other gateway has sealed the request state once more. isRetry is
// false for all other requests.
func (g *Gateway) continueOwned(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (res *mcp.Result, err error, isRetry bool) {
	if g.isOwner || rawjson.Lookup(params, "requestState") == nil {
		return nil, nil, false
	}
	target, isShared := u.Definition().Target.(*sharedserver.Target)
	if !isShared || !target.IsOwn() { // otherwise, the owner gets the request
		return nil, nil, false
	}
	own := *req
	if own.Params, err = g.openRound(u, req, params); err != nil || !g.parked.ownsState(u, &own) {
		return nil, nil, false
	}
	res, err = g.serveReplicas(u.Name()).forwardToUpstream(ctx, u, &own, own.Params)
	if err == nil && res.Raw == nil {
		raw, failed := mcp.Encode(res.Value)
		res, err = &mcp.Result{Type: res.Type, Raw: raw, Cache: res.Cache}, failed
	}
	res, err = g.sealRound(u, req, params, res, err)
	return res, err, true
}

// serveOwnedTask answers a request about a task that the owner of an upstream hosts for a client of
// another replica. The other gateway has sealed its id. isOwned is false for all other tasks.
func (g *Gateway) serveOwnedTask(ctx context.Context, req *mcp.Request, t sealedTask, id string) (res *mcp.Result, err error, isOwned bool) {
	if u := g.hub.Upstream(t.Upstream); g.isOwner || u == nil || !runsInCluster(u) {
		return nil, nil, false
	}
	own := *req
	own.Params = renameMember(req.Params, "taskId", id, t.ID)
	if res, err, isOwned = g.serveKeptTask(ctx, &own, t.ID); isOwned && err == nil {
		res.Raw = showTaskAs(res.Raw, id)
	}
	return res, err, isOwned
}

// showTaskAs returns the state of a task under another id.
func showTaskAs(task json.RawMessage, id string) json.RawMessage {
	own, ok := rawjson.String(rawjson.Lookup(task, "taskId"))
	if !ok {
		return task
	}
	return renameMember(task, "taskId", own, id)
}

// describeUpstream answers server/discover as the upstream does.
func describeUpstream(u *hub.Upstream) (*mcp.Result, error) {
	server := u.Server()
	info, err := mcp.Encode(server.Info)
	if err != nil {
		return nil, err
	}
	return &mcp.Result{ServerInfo: info, Value: &mcp.DiscoverResult{
		SupportedVersions: mcp.Revisions(), Capabilities: server.Capabilities, Instructions: server.Instructions,
	}}, nil
}
