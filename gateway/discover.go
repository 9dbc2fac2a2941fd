package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// capabilities do not depend on the upstreams, because those change while the gateway runs.
var capabilities = mcp.ServerCapabilities{
	Tools:       &mcp.ListCapability{ListChanged: true},
	Prompts:     &mcp.ListCapability{ListChanged: true},
	Resources:   &mcp.ResourcesCapability{ListChanged: true, Subscribe: true},
	Completions: &struct{}{},
	Logging:     &struct{}{},
	Extensions:  map[string]json.RawMessage{mcpwire.ExtensionSkills: json.RawMessage("{}")},
}

// serveDiscover answers server/discover.
func (g *Gateway) serveDiscover(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	g.awaitUpstreams(ctx)
	offered := capabilities
	if mayHaveTasks(req) {
		offered.Extensions = mcpwire.Vocabulary(g.Extensions()).Declare()
		maps.Copy(offered.Extensions, capabilities.Extensions)
	}
	return &mcp.Result{Value: &mcp.DiscoverResult{
		SupportedVersions: mcp.Revisions(), Capabilities: offered, Instructions: g.mergedInstructions(),
	}}, nil
}

// mergedInstructions returns the instructions of all shown upstreams, each under its name.
func (g *Gateway) mergedInstructions() string {
	var b strings.Builder
	b.WriteString(g.opts.Instructions)
	for _, u := range g.shownUpstreams() {
		text := strings.TrimSpace(u.Instructions())
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		if g.showsAll() {
			b.WriteString("# " + u.Name() + "\n\n")
		}
		b.WriteString(text)
	}
	return b.String()
}
