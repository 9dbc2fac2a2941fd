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

// Names of the agent's own tools. An underscore is added if a server's tool has the name.
const (
	readToolName   = "read_result"
	searchToolName = "search_tools"
)

// toolOffer selects the definitions that the model gets: all, in the order of their names, or, if
// they would take too much of the window, only the tools that it has found or called, in the order
// in which it did. An order that never changes lets the provider use its cache.
type toolOffer struct {
	searchName string // the name of search_tools
	deferred   bool
	order      []string // names of the offered tools, if others are deferred
	overview   string   // tells the model about the deferred tools
	index      *search.Index
	lastUse    map[string]int // by name, the value of uses when the tool was offered, found or called last
	uses       int

	tools []mcp.Tool // the definitions; nil: not up to date
	size  int
	own   []string // names of the agent's own tools among them, without search_tools
}

// offeredTools returns the definitions that the model gets.
func (a *Agent) offeredTools() []mcp.Tool {
	o, own := &a.offer, a.ownToolNames()
	if o.tools != nil && slices.Equal(o.own, own) {
		return o.tools
	}
	o.own = own
	if o.deferred {
		o.tools = a.orderedTools()
	} else {
		o.tools = append(make([]mcp.Tool, 0, len(a.listed)+len(own)), a.listed...)
		for _, name := range own {
			o.tools = append(o.tools, a.ownTool(name))
		}
	}
	o.size = 0
	for i := range o.tools {
		o.size += estimateTool(&o.tools[i])
	}
	return o.tools
}

// ownToolNames returns the names of the agent's own tools that have something to do now, without
// search_tools.
func (a *Agent) ownToolNames() []string {
	names := append(a.resources.toolNames(), a.skills.toolNames()...)
	if a.results.hasTexts() {
		names = append(names, a.results.tool)
	}
	return names
}

// ownTool returns the definition of a tool of ownToolNames.
func (a *Agent) ownTool(name string) mcp.Tool {
	if t, ok := a.resources.toolNamed(name); ok {
		return t
	}
	if t, ok := a.skills.toolNamed(name); ok {
		return t
	}
	return a.results.definition()
}

// orderedTools returns the definitions of the tools offered so far, without withdrawn tools. If
// the model does not take as many, the least recently used are left out.
func (a *Agent) orderedTools() []mcp.Tool {
	for _, name := range a.offer.own {
		a.offerTool(name)
	}
	a.dropUnused()
	tools := make([]mcp.Tool, 0, len(a.offer.order))
	for _, name := range a.offer.order {
		switch t := a.toolNamed(name); {
		case name == a.offer.searchName:
			tools = append(tools, searchDefinition(name))
		case slices.Contains(a.offer.own, name):
			tools = append(tools, a.ownTool(name))
		case t != nil:
			tools = append(tools, *t)
		}
	}
	return tools
}

// offerTool marks a tool as used, and adds it to the offered ones.
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

// dropUnused removes offered tools beyond the model's limit: withdrawn tools first, then the
// least recently used. The agent's own tools stay.
func (a *Agent) dropUnused() {
	o, most := &a.offer, a.maxTools()
	if most == 0 || len(o.order) <= most {
		return
	}
	var others []string
	for _, name := range o.order {
		if name != o.searchName && !slices.Contains(o.own, name) {
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

// maxOwnTools returns how many tools of its own the agent may offer.
func (a *Agent) maxOwnTools() int {
	n := 2 // search_tools and read_result
	if a.resources.source != nil {
		n += 2 // list_resources and read_resource
	}
	if a.skills.hasSkills() {
		n++ // read_skill
	}
	return n
}

// maxTools returns how many tools the model takes; 0: any number.
func (a *Agent) maxTools() int {
	if m, ok := a.model.(interface{ MaxTools() int }); ok {
		return max(0, m.MaxTools())
	}
	return 0
}

// setTools replaces the list of tools, and decides whether they are too many to offer all. The
// tools in read stay first: the provider has their definitions already.
func (a *Agent) setTools(tools, read []mcp.Tool) {
	a.listed = append(make([]mcp.Tool, 0, len(tools)), tools...) // not nil
	a.offer.tools, a.offer.index = nil, nil
	a.offer.searchName, a.results.tool = a.freeName(searchToolName), a.freeName(readToolName)
	a.resources.listTool, a.resources.readTool = a.freeName(listResourcesName), a.freeName(readResourceName)
	a.skills.tool = a.freeName(readSkillName)
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

// freeName returns a name for an own tool that no server's tool has.
func (a *Agent) freeName(name string) string {
	for a.toolNamed(name) != nil {
		name += "_"
	}
	return name
}

// tooManyTools reports whether the tools are more than the model takes, or take more of the
// window than allowed.
func (a *Agent) tooManyTools() bool {
	if most := a.maxTools(); most > 0 && len(a.listed) > most-a.maxOwnTools() {
		return true
	}
	if a.opts.Limits.SearchAt < 0 || len(a.listed) <= maxFound { // one search would find them all
		return false
	}
	window, size := a.windowSize(), 0
	if window <= 0 {
		window = assumedWindow
	}
	for i := range a.listed {
		size += estimateTool(&a.listed[i])
	}
	return float64(size) > a.opts.Limits.SearchAt*float64(window)
}

// systemPrompt joins the texts that come before all messages.
func (a *Agent) systemPrompt() string {
	parts := []string{a.opts.System, "", a.offer.overview}
	if a.opts.Instructions != nil {
		parts[1] = a.opts.Instructions()
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "\n\n")
}

// toolOverview tells the model how many tools exist. It is not updated later, since a change
// would make the provider read everything again.
func (a *Agent) toolOverview() string {
	return fmt.Sprintf("There are %d tools%s, too many to show them all. Before you say that something cannot be done, look for a tool with %s: "+
		"those that it finds can be called from then on.", len(a.listed), a.countPerServer(nil), a.offer.searchName)
}

// countPerServer lists servers with the number of their tools among names; nil means all tools.
func (a *Agent) countPerServer(names []string) string {
	if names == nil {
		for i := range a.listed {
			names = append(names, a.listed[i].Name)
		}
	}
	var servers []string
	count := map[string]int{}
	for _, name := range names {
		server := a.serverOf(name)
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

// maxFound is how many tools a search returns.
const maxFound = 10

// searchTools answers a call of search_tools.
func (a *Agent) searchTools(input json.RawMessage) (string, error) {
	var in struct{ Query string }
	if err := json.Unmarshal(input, &in); err != nil {
		return "", fmt.Errorf("the arguments are not as the schema of %s says: %w", a.offer.searchName, err)
	}
	most := maxFound
	if n := a.maxTools(); n > 0 {
		most = max(1, min(most, n-a.maxOwnTools())) // so that all can be offered
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
	if err != nil { // the schema is not JSON: the other fields still count
		return search.Tool{Name: t.Name, Server: a.serverOf(t.Name), Title: t.Title, Description: t.Description}
	}
	d := search.FromDefinition(a.serverOf(t.Name), t.Name, raw)
	d.OwnName = "" // the definition holds the qualified name
	return d
}
