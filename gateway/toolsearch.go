package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/search"
	"github.com/dowel-mcp/dowel/mcp"
)

// The tools that stand for the whole catalog.
const (
	SearchTool   = "search_tools"
	DescribeTool = "describe_tool"
	CallTool     = "call_tool"
)

// defaultHits is how many tools a search finds where nothing is said, and maxHits how many at most.
const (
	defaultHits = 10
	maxHits     = 50
)

var searchTools = []json.RawMessage{
	json.RawMessage(`{"name":"` + SearchTool + `","title":"Search tools","description":"Finds tools among all that are there, best first. ` +
		`Say in a few words what is to be done. Then see ` + DescribeTool + ` for what a tool takes, and ` + CallTool + ` to use it.",` +
		`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What is to be done"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many tools to find, 10 by default"}},"required":["query"]},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`),
	json.RawMessage(`{"name":"` + DescribeTool + `","title":"Describe a tool","description":"Gives the whole definition of a tool, with the schema of its arguments.",` +
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name, as ` + SearchTool + ` gives it"}},"required":["name"]},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`),
	json.RawMessage(`{"name":"` + CallTool + `","title":"Call a tool","description":"Calls a tool that ` + SearchTool + ` has found.",` +
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name, as ` + SearchTool + ` gives it"},` +
		`"arguments":{"type":"object","description":"What the tool takes, as ` + DescribeTool + ` gives it"}},"required":["name"]}}`),
}

// WithToolSearch returns the gateway with a search in place of its many tools: [SearchTool], [DescribeTool] and [CallTool], and
// those tools as they are that are pinned by their qualified names or names on the wire. Everything else is the same.
func (c *core) WithToolSearch(pinned ...string) *Gateway {
	return &Gateway{core: c, search: &toolSearch{pinned: pinned}}
}

// toolSearch replaces the list of tools by three tools that search, describe and call all of them.
type toolSearch struct {
	pinned []string // qualified names, or names on the wire, of tools that are listed too
	index  perCatalog[*search.Index]
}

// eachTool calls yield with the definition of each listed tool.
func (s *toolSearch) eachTool(c *hub.Catalog, yield func(json.RawMessage)) {
	for _, tool := range searchTools {
		yield(tool)
	}
	yield(statusTool)
	seen := map[*hub.Item]bool{}
	for _, name := range s.pinned {
		if item := c.Find(hub.Tool, name); item != nil && !seen[item] {
			seen[item] = true
			yield(item.Definition)
		}
	}
}

// callOwnTool answers calls of the tools that stand for all. Every other one can be called too: a model that knows a name may use it.
func (s *toolSearch) callOwnTool(ctx context.Context, g *Gateway, name string, req *mcp.Request) (res *mcp.Result, err error, ok bool) {
	c := g.hub.Catalog()
	arguments := rawjson.Lookup(req.Params, "arguments")
	switch name {
	case SearchTool:
		res, err = s.runSearch(c, arguments)
	case DescribeTool:
		res, err = s.describeTool(c, arguments)
	case CallTool:
		res, err = s.callFoundTool(ctx, g, req, arguments)
	default:
		return nil, nil, false
	}
	return res, err, true
}

// foundTool is a tool as a search gives it.
type foundTool struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Description string `json:"description,omitzero"`
}

func (s *toolSearch) runSearch(c *hub.Catalog, arguments json.RawMessage) (*mcp.Result, error) {
	var in struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := decodeArguments(arguments, &in); err != nil {
		return failedResult(SearchTool + ": " + err.Error()), nil
	}
	if in.Limit <= 0 {
		in.Limit = defaultHits
	}
	items := c.Items(hub.Tool)
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

// currentIndex returns the index of a catalog, which is made once.
func (s *toolSearch) currentIndex(c *hub.Catalog) *search.Index {
	return s.index.get(c, func() *search.Index {
		var tools []search.Tool
		for _, item := range c.Items(hub.Tool) {
			tool := search.FromDefinition(item.Upstream.Name(), item.WireName, item.Definition)
			tool.Bare = item.LocalName
			tools = append(tools, tool)
		}
		return search.New(tools)
	})
}

func (s *toolSearch) describeTool(c *hub.Catalog, arguments json.RawMessage) (*mcp.Result, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := decodeArguments(arguments, &in); err != nil {
		return failedResult(DescribeTool + ": " + err.Error()), nil
	}
	item := c.Find(hub.Tool, in.Name)
	if item == nil {
		return failedResult(s.unknownTool(c, in.Name)), nil
	}
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(item.Definition))}, StructuredContent: item.Definition}}, nil
}

// callFoundTool makes the call that the arguments describe; a retry of it carries the same answers and state. What header fields mirror
// are the arguments of call_tool.
func (s *toolSearch) callFoundTool(ctx context.Context, g *Gateway, req *mcp.Request, arguments json.RawMessage) (*mcp.Result, error) {
	name, _ := rawjson.String(rawjson.Lookup(arguments, "name"))
	item := g.hub.Catalog().Find(hub.Tool, name)
	if item == nil {
		return failedResult(s.unknownTool(g.hub.Catalog(), name)), nil
	}
	inner := rawjson.Lookup(arguments, "arguments")
	if inner == nil || rawjson.IsNull(inner) {
		inner = []byte("{}")
	}
	own := *req
	own.Params = rawjson.Replace(rawjson.Replace(req.Params, "name", rawjson.AppendString(nil, name)), "arguments", inner)
	return g.useTool(ctx, item, &own, name)
}

// unknownTool says that there is no such tool, and which ones may have been meant.
func (s *toolSearch) unknownTool(c *hub.Catalog, name string) string {
	text := fmt.Sprintf("There is no tool called %q.", name)
	var near []string
	for _, hit := range s.currentIndex(c).Find(name, 5) {
		near = append(near, c.Items(hub.Tool)[hit.Tool].WireName)
	}
	if near != nil {
		text += " Perhaps one of these: " + strings.Join(near, ", ") + "."
	}
	return text
}

func decodeArguments(raw json.RawMessage, into any) error {
	if raw == nil {
		return fmt.Errorf("the arguments are missing")
	}
	return mcp.Decode(raw, into)
}

// oneLine returns the beginning of a description.
func oneLine(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
