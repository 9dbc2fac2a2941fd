package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/mcp"
)

// statusToolName is the gateway's own tool that tells a model the states of the servers. Upstreams
// cannot have a tool of that name.
const statusToolName = "dowel__status"

var statusTool = json.RawMessage(`{"name":"` + statusToolName + `","title":"Status of the servers",` +
	`"description":"Tells which MCP servers stand behind this one, how each of them is, and why some of their tools may be missing.",` +
	`"inputSchema":{"type":"object","properties":{}},` +
	`"outputSchema":{"type":"object","properties":{"servers":{"type":"array","items":{"type":"object","properties":{` +
	`"server":{"type":"string"},"status":{"type":"string"},"reason":{"type":"string"},"tools":{"type":"integer"}},` +
	`"required":["server","status","tools"]}}},"required":["servers"]},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)

// serverStatus is an element of the status tool's result.
type serverStatus struct {
	missingServer
	Tools int `json:"tools"`
}

// callStatusTool answers a call of dowel__status.
func (g *Gateway) callStatusTool() (*mcp.Result, error) {
	tools := map[*hub.Upstream]int{}
	for _, item := range g.hub.Catalog().Items(catalog.Tool) {
		tools[item.Upstream]++
	}
	all := []serverStatus{}
	var text strings.Builder
	for _, u := range g.shownUpstreams() {
		s := u.State()
		why := ""
		if s.Status != hub.Ready {
			why = describeState(s)
		}
		all = append(all, serverStatus{missingServer{u.Name(), s.Status, why}, tools[u]})
		fmt.Fprintf(&text, "%s: %s, %d tools", u.Name(), s.Status, tools[u])
		if why != "" {
			text.WriteString(" (" + why + ")")
		}
		text.WriteByte('\n')
	}
	structured, err := json.Marshal(map[string]any{"servers": all})
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text.String())}, StructuredContent: structured}}, nil
}
