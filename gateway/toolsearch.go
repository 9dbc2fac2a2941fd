package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/search"
	"github.com/dowel-mcp/dowel/mcp"
)

// The tools that stand for the whole catalog.
const (
	// searchToolName, DescribeTool and CallTool are the tools of a gateway with tool search.
	searchToolName   = "search_tools"
	describeToolName = "describe_tool"
	callToolName     = "call_tool"
)

// defaultHits is how many tools a search finds where nothing is said, and maxHits how many at most.
const (
	// defaultHits and maxHits are the default and the greatest number of tools that a search finds.
	defaultHits = 10
	maxHits     = 50
)

var searchTools = []json.RawMessage{
	json.RawMessage(`{"name":"` + searchToolName + `","title":"Search tools","description":"Finds tools among all that are there, best first. ` +
		`Say in a few words what is to be done. Then see ` + describeToolName + ` for what a tool takes, and ` + callToolName + ` to use it.",` +
		`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What is to be done"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many tools to find, 10 by default"}},"required":["query"]},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`),
	json.RawMessage(`{"name":"` + describeToolName + `","title":"Describe a tool","description":"Gives the whole definition of a tool, with the schema of its arguments.",` +
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name, as ` + searchToolName + ` gives it"}},"required":["name"]},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`),
	json.RawMessage(`{"name":"` + callToolName + `","title":"Call a tool","description":"Calls a tool that ` + searchToolName + ` has found.",` +
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name, as ` + searchToolName + ` gives it"},` +
		`"arguments":{"type":"object","description":"What the tool takes, as ` + describeToolName + ` gives it"}},"required":["name"]}}`),
}

// WithToolSearch returns a gateway of all upstreams that lists search_tools, describe_tool and
// call_tool in place of the tools. It also lists the pinned tools, by their qualified names or
// names on the wire. Tools that are not listed can still be called.
func (c *core) WithToolSearch(pinned ...string) *Gateway {
	return &Gateway{core: c, search: &toolSearch{pinned: pinned}}
}

// toolSearch is the state of a gateway with tool search.
type toolSearch struct {
	pinned []string // names of tools that are listed too
	index  perCatalog[*search.Index]
}

// eachTool calls yield with the definition of each listed tool.
func (s *toolSearch) eachTool(c *itemCatalog, yield func(json.RawMessage)) {
	for _, tool := range searchTools {
		yield(tool)
	}
	yield(statusTool)
	seen := map[*catalogItem]bool{}
	for _, name := range s.pinned {
		if item := c.Find(catalog.Tool, name); item != nil && !seen[item] {
			seen[item] = true
			yield(item.Definition)
		}
	}
}

// callOwnTool answers a call of one of the three tools. ok is false for other tools.
func (s *toolSearch) callOwnTool(ctx context.Context, g *Gateway, name string, req *mcp.Request) (res *mcp.Result, err error, ok bool) {
	c := g.hub.Catalog()
	arguments := rawjson.Lookup(req.Params, "arguments")
	switch name {
	case searchToolName:
		res, err = s.runSearch(c, arguments)
	case describeToolName:
		res, err = s.describeTool(g, c, arguments)
	case callToolName:
		res, err = s.callFoundTool(ctx, g, req, arguments)
	default:
		return nil, nil, false
	}
	return res, err, true
}

// foundTool is an element of a search result.
type foundTool struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Description string `json:"description,omitzero"`
}

// runSearch answers a call of search_tools.
func (s *toolSearch) runSearch(c *itemCatalog, arguments json.RawMessage) (*mcp.Result, error) {
	var in struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := decodeArguments(arguments, &in); err != nil {
		return failedResult(searchToolName + ": " + err.Error()), nil
	}
	if in.Limit <= 0 {
		in.Limit = defaultHits
	}
	items := c.Items(catalog.Tool)
	all := []foundTool{}
	var text strings.Builder
	for _, hit := range s.currentIndex(c).Find(in.Query, min(in.Limit, maxHits)) {
		item := items[hit.Tool]
		description, _ := rawjson.String(rawjson.Lookup(item.Definition, "description"))
		all = append(all, foundTool{item.WireName, item.Upstream.Name(), description})
		fmt.Fprintf(&text, "%s: %s\n", item.WireName, oneLine(description))
	}
	if len(all) == 0 {
		text.WriteString("No tool fits that. Try other words, or an empty query for all.")
	}
	structured, err := json.Marshal(map[string]any{"tools": all})
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text.String())}, StructuredContent: structured}}, nil
}

// currentIndex returns the search index of a catalog, which is made once.
func (s *toolSearch) currentIndex(c *itemCatalog) *search.Index {
	return s.index.get(c, func() *search.Index {
		var tools []search.Tool
		for _, item := range c.Items(catalog.Tool) {
			tool := search.FromDefinition(item.Upstream.Name(), item.WireName, item.Definition)
			tool.OwnName = item.LocalName
			tools = append(tools, tool)
		}
		return search.New(tools)
	})
}

// describeTool answers a call of describe_tool.
func (s *toolSearch) describeTool(g *Gateway, c *itemCatalog, arguments json.RawMessage) (*mcp.Result, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := decodeArguments(arguments, &in); err != nil {
		return failedResult(describeToolName + ": " + err.Error()), nil
	}
	item := c.Find(catalog.Tool, in.Name)
	if item == nil {
		return failedResult(cmp.Or(g.withheldReason(catalog.Tool, in.Name), s.unknownTool(c, in.Name))), nil
	}
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(item.Definition))}, StructuredContent: item.Definition}}, nil
}

// callFoundTool answers a call of call_tool by a call of the tool in its arguments. A repeated
// call carries the same answers and state. Header fields mirror the arguments of call_tool, so
// they are not compared.
func (s *toolSearch) callFoundTool(ctx context.Context, g *Gateway, req *mcp.Request, arguments json.RawMessage) (*mcp.Result, error) {
	name, _ := rawjson.String(rawjson.Lookup(arguments, "name"))
	item := g.hub.Catalog().Find(catalog.Tool, name)
	if item == nil {
		return failedResult(cmp.Or(g.withheldReason(catalog.Tool, name), s.unknownTool(g.hub.Catalog(), name))), nil
	}
	inner := rawjson.Lookup(arguments, "arguments")
	if inner == nil || rawjson.IsNull(inner) {
		inner = []byte("{}")
	}
	own := *req
	own.Params = rawjson.Replace(rawjson.Replace(req.Params, "name", rawjson.AppendString(nil, name)), "arguments", inner)
	return g.useTool(ctx, item, &own, name)
}

// unknownTool returns an error text for an unknown tool, with similar tools.
func (s *toolSearch) unknownTool(c *itemCatalog, name string) string {
	text := fmt.Sprintf("There is no tool called %q.", name)
	var near []string
	for _, hit := range s.currentIndex(c).Find(name, 5) {
		near = append(near, c.Items(catalog.Tool)[hit.Tool].WireName)
	}
	if near != nil {
		text += " Perhaps one of these: " + strings.Join(near, ", ") + "."
	}
	return text
}

// decodeArguments decodes the arguments of a call.
func decodeArguments(raw json.RawMessage, into any) error {
	if raw == nil {
		return fmt.Errorf("the arguments are missing")
	}
	return mcp.Decode(raw, into)
}

// oneLine returns the first 200 characters of a description, in one line.
func oneLine(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
