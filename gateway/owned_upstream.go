package gateway

import (
	"context"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

func init() {
	hublink.ServeUpstream = func(g any, name string) any { return &ownedUpstream{g.(*Gateway).Relay(name)} }
}

// ownedUpstream serves an upstream to the hub of another replica. That hub applies the rules of the server's
// entry, so here all names are the server's own. Questions of a legacy server wait here, and the retries
// of the other gateway bring the answers.
type ownedUpstream struct{ *Gateway }

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
