package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/search"
	"github.com/dowel-mcp/dowel/mcp"
)

// Names of the agent's own tools; _ goes behind one that a server has taken.
const (
	readToolName   = "read_result"
	searchToolName = "search_tools"
)

// toolOffer is which tools the model is given the definitions of: all, in the order of their names; or, where they would take too much
// of its window, those that it has found or called, in that order, so that what the provider has read before stays the same.
type toolOffer struct {
	searchName string // the name of search_tools
	deferred   bool
	order      []string // what is offered, once others are deferred
	overview   string   // what the model is told of those
	index      *search.Index
	lastUse    map[string]int // when one was offered, found or called last
	uses       int

	tools     []mcp.Tool // the definitions; nil: to be put together
	size      int
	hasReader bool // read_result is among them
}

// offeredTools are the tools that the model is offered.
func (a *Agent) offeredTools() []mcp.Tool {
	o := &a.offer
	if o.tools != nil && o.hasReader == a.results.hasTexts() {
		return o.tools
	}
	o.hasReader = a.results.hasTexts()
	if o.deferred {
		o.tools = a.orderedTools()
	} else {
		o.tools = append(make([]mcp.Tool, 0, len(a.listed)+1), a.listed...)
		if o.hasReader {
			o.tools = append(o.tools, a.results.definition())
		}
	}
	o.size = 0
	for i := range o.tools {
		o.size += estimateTool(&o.tools[i])
	}
	return o.tools
}

// orderedTools are the tools that have been offered so far, without those that are not there at present, and without those that have not
// been used for longest where the model does not take as many.
func (a *Agent) orderedTools() []mcp.Tool {
	if a.offer.hasReader {
		a.offerTool(a.results.tool)
	}
	a.dropUnused()
	tools := make([]mcp.Tool, 0, len(a.offer.order))
	for _, name := range a.offer.order {
		switch t := a.toolNamed(name); {
		case name == a.offer.searchName:
			tools = append(tools, searchDefinition(name))
		case name == a.results.tool:
			tools = append(tools, a.results.definition())
		case t != nil:
			tools = append(tools, *t)
		}
	}
	return tools
}

// offerTool puts a tool behind those that are offered.
func (a *Agent) offerTool(name string) {
	o := &a.offer
	if !o.deferred {
		return
	}
	if o.lastUse == nil {
		o.lastUse = map[string]int{}
	}
	o.uses++
	o.lastUse[name] = o.uses
	if !slices.Contains(o.order, name) {
		o.order, o.tools = append(o.order, name), nil
	}
}

// dropUnused takes tools out of the order that are too many for the model, and those that are not there first. The agent's own stay.
func (a *Agent) dropUnused() {
	o, most := &a.offer, a.maxTools()
	if most == 0 || len(o.order) <= most {
		return
	}
	var others []string
	for _, name := range o.order {
		if name != o.searchName && name != a.results.tool {
			others = append(others, name)
		}
	}
	since := func(name string) int {
		if a.toolNamed(name) == nil {
			return 0
		}
		return o.lastUse[name]
	}
	slices.SortStableFunc(others, func(a, b string) int { return cmp.Compare(since(a), since(b)) })
	gone := others[:min(len(o.order)-most, len(others))]
	o.order = slices.DeleteFunc(o.order, func(name string) bool { return slices.Contains(gone, name) })
}

// ownTools is how many tools of its own the agent may offer.
const ownTools = 2

// maxTools is how many tools the model takes; 0: there is no bound.
func (a *Agent) maxTools() int {
	if m, ok := a.model.(interface{ MaxTools() int }); ok {
		return max(0, m.MaxTools())
	}
	return 0
}

// setTools takes other tools, and sees whether they are too many to be offered all. Those stay offered that the provider has read.
func (a *Agent) setTools(tools, read []mcp.Tool) {
	a.listed = append(make([]mcp.Tool, 0, len(tools)), tools...) // not nil
	a.offer.tools, a.offer.index = nil, nil
	a.offer.searchName, a.results.tool = a.freeName(searchToolName), a.freeName(readToolName)
	if a.offer.deferred || !a.tooManyTools() {
		return
	}
	a.offer.deferred = true
	for i := range read {
		a.offerTool(read[i].Name)
	}
	a.offerTool(a.offer.searchName)
	for i := range a.history.messages {
		for _, use := range a.history.messages[i].Calls() {
			if a.toolNamed(use.Name) != nil {
				a.offerTool(use.Name)
			}
		}
	}
	a.offer.overview = a.toolOverview()
}

// freeName is a name for an own tool that no other has.
func (a *Agent) freeName(name string) string {
	for a.toolNamed(name) != nil {
		name += "_"
	}
	return name
}

// tooManyTools reports whether all tools are more than the model takes, or their definitions take more of the window than they may.
func (a *Agent) tooManyTools() bool {
	if most := a.maxTools(); most > 0 && len(a.listed) > most-ownTools {
		return true
	}
	if a.opts.SearchAt < 0 || len(a.listed) <= maxFound { // one search would find them all
		return false
	}
	window, size := a.windowSize(), 0
	if window <= 0 {
		window = assumedWindow
	}
	for i := range a.listed {
		size += estimateTool(&a.listed[i])
	}
	return float64(size) > a.opts.SearchAt*float64(window)
}

// systemPrompt is what the model is told before everything else.
func (a *Agent) systemPrompt() string {
	parts := []string{a.opts.System, "", a.offer.overview}
	if a.opts.Instructions != nil {
		parts[1] = a.opts.Instructions()
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "\n\n")
}

// toolOverview says how many tools there are. It is not changed later, since providers keep what they have read.
func (a *Agent) toolOverview() string {
	return fmt.Sprintf("There are %d tools%s, too many to show them all. Before you say that something cannot be done, look for a tool with %s: "+
		"those that it finds can be called from then on.", len(a.listed), a.countPerServer(nil), a.offer.searchName)
}

// countPerServer says which servers tools are of, and how many: all tools, where none are named.
func (a *Agent) countPerServer(names []string) string {
	if names == nil {
		for i := range a.listed {
			names = append(names, a.listed[i].Name)
		}
	}
	var servers []string
	count := map[string]int{}
	for _, name := range names {
		server := a.opts.Server(name)
		if server == "" {
			continue
		}
		if count[server] == 0 {
			servers = append(servers, server)
		}
		count[server]++
	}
	if len(servers) == 0 {
		return ""
	}
	for i, server := range servers {
		servers[i] = fmt.Sprintf("%s (%d)", server, count[server])
	}
	return " of these servers: " + strings.Join(servers, ", ")
}

func searchDefinition(name string) mcp.Tool {
	return mcp.Tool{
		Name: name,
		Description: "Finds tools among all that there are, best first, and makes them available to be called. " +
			"Say in a few words what is to be done, and name the server if you know it.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"What is to be done"}},` +
			`"required":["query"],"additionalProperties":false}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)},
	}
}

// maxFound is how many tools a search finds.
const maxFound = 10

// searchTools answers a call of search_tools.
func (a *Agent) searchTools(input json.RawMessage) (string, error) {
	var in struct{ Query string }
	if err := json.Unmarshal(input, &in); err != nil {
		return "", fmt.Errorf("the arguments are not as the schema of %s says: %w", a.offer.searchName, err)
	}
	most := maxFound
	if n := a.maxTools(); n > 0 {
		most = max(1, min(most, n-ownTools)) // so that all can be offered
	}
	found := a.findTools(in.Query, most)
	if len(found) == 0 {
		return "No tool fits that. Try other words, or an empty query for all.", nil
	}
	var text strings.Builder
	for _, t := range found {
		fmt.Fprintf(&text, "%s: %s\n", t.Name, oneLine(t.Description))
		a.offerTool(t.Name)
	}
	for _, t := range slices.Backward(found) { // the best one is the last to be forgotten
		a.offerTool(t.Name)
	}
	text.WriteString("\nThese can be called now.")
	return text.String(), nil
}

// findTools returns the tools that fit a query best.
func (a *Agent) findTools(query string, most int) (found []*mcp.Tool) {
	if a.offer.index == nil {
		docs := make([]search.Tool, len(a.listed))
		for i := range a.listed {
			docs[i] = a.searchDocument(&a.listed[i])
		}
		a.offer.index = search.New(docs)
	}
	for _, hit := range a.offer.index.Find(query, most) {
		found = append(found, &a.listed[hit.Tool])
	}
	return found
}

func (a *Agent) searchDocument(t *mcp.Tool) search.Tool {
	raw, err := json.Marshal(t)
	if err != nil { // its schema is no JSON: its names are left
		return search.Tool{Name: t.Name, Server: a.opts.Server(t.Name), Title: t.Title, Description: t.Description}
	}
	d := search.FromDefinition(a.opts.Server(t.Name), t.Name, raw)
	d.OwnName = "" // what is in the definition is the qualified name
	return d
}
