package hub

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// Kind is what a thing in the catalog is.
type Kind int

const (
	Tool Kind = iota
	Prompt
	Resource
	Template
	kinds
)

// kindTable says how things of each kind are listed.
var kindTable = [kinds]struct {
	name, method, list, key, changed string
}{
	Tool:     {"tool", mcp.MethodListTools, "tools", "name", mcp.NotificationToolsChanged},
	Prompt:   {"prompt", mcp.MethodListPrompts, "prompts", "name", mcp.NotificationPromptsChanged},
	Resource: {"resource", mcp.MethodListResources, "resources", "uri", mcp.NotificationResourcesChanged},
	Template: {"resource template", mcp.MethodListResourceTemplates, "resourceTemplates", "uriTemplate", mcp.NotificationResourcesChanged},
}

// String returns the kind in words.
func (k Kind) String() string { return kindTable[k].name }

// List is the member of a list's result that holds things of the kind, such as "tools".
func (k Kind) List() string { return kindTable[k].list }

// Changed is the notification that says that there are other things of the kind.
func (k Kind) Changed() string { return kindTable[k].changed }

// Item is one thing that an upstream offers. It does not change.
type Item struct {
	Upstream *Upstream
	Kind     Kind
	// Name is what the server calls it: a name, a URI or a template. Offered is that with the definition's rules.
	Name, Offered string
	// Wire is its name in the catalog of all, and Qualified the one for people.
	Wire, Qualified string
	// Raw is its definition under the name Wire, and Own that under its own name; both with the definition's rules.
	Raw, Own json.RawMessage

	headers  server.Headers        // parameters of a tool that are mirrored into header fields
	template *uritemplate.Template // of a resource template that can be read
}

// Quarantined is a thing that is not offered, since it is broken. Under the name of a list's method it is what could not be
// read of the list.
type Quarantined struct {
	Kind   Kind
	Name   string
	Reason string
}

// offer is what an upstream offers: as it was told, and as it is passed on. It does not change.
type offer struct {
	told        [kinds][]json.RawMessage
	says        string // the server's instructions
	cache       [kinds]mcp.Cache
	items       [kinds][]*Item
	quarantined []Quarantined
	problems    [kinds]string // why a list could not be read to its end; empty where it could
}

// derive makes items of what was told.
func (o *offer) derive(u *Upstream, rules ToolRules) *offer {
	n := &offer{told: o.told, says: o.says, cache: o.cache, problems: o.problems}
	for k := range kinds {
		seen := map[string]bool{}
		for _, raw := range o.told[k] {
			item, reason := newItem(u, k, raw, rules)
			switch {
			case reason == "" && item.Raw != nil && seen[item.Offered]:
				reason = "another one has that name: " + item.Offered
			case reason == "" && item.Raw == nil:
				continue
			}
			seen[item.Offered] = true
			if reason != "" {
				n.quarantined = append(n.quarantined, Quarantined{k, item.Name, reason})
				continue
			}
			n.items[k] = append(n.items[k], item)
		}
		if o.problems[k] != "" {
			n.quarantined = append(n.quarantined, Quarantined{k, kindTable[k].method, o.problems[k]})
		}
	}
	return n
}

// newItem returns an item without Raw where the rules leave it out, and a reason where it is broken.
func newItem(u *Upstream, k Kind, raw json.RawMessage, rules ToolRules) (item *Item, reason string) {
	item = &Item{Upstream: u, Kind: k}
	name, ok := rawjson.String(rawjson.Lookup(raw, kindTable[k].key))
	if item.Name = name; !ok || name == "" {
		return item, "it has no " + kindTable[k].key
	}
	if twice(raw, kindTable[k].key) { // readers differ in which one they take
		return item, "it has more than one " + kindTable[k].key
	}
	offered := name
	if k == Tool || k == Prompt {
		raw = unforged(raw)
	}
	item.Own = raw
	if k == Tool {
		if !rules.offers(name) {
			return item, ""
		}
		offered = cmp.Or(rules.Rename[name], name)
		if item.Own, reason = item.tool(raw, offered, rules); reason != "" {
			return item, reason
		}
	}
	if k == Template {
		item.template, _ = uritemplate.Parse(name) // what cannot be read matches nothing, and is passed on
	}
	item.Offered, item.Qualified = offered, u.name+"."+offered
	item.Wire, item.Raw = name, item.Own
	if k == Tool || k == Prompt {
		item.Wire = wireName(u.name, offered)
		item.Raw = item.named()
	}
	return item, ""
}

func twice(object json.RawMessage, name string) bool {
	n := 0
	for it := rawjson.Object(object); it.Next(); {
		if string(it.Key) == name {
			n++
		}
	}
	return n > 1
}

// tool returns a tool's definition with the rules, and a reason where it is broken.
func (item *Item) tool(raw json.RawMessage, offered string, rules ToolRules) (json.RawMessage, string) {
	input := rawjson.Lookup(raw, "inputSchema")
	if input == nil || !rawjson.IsObject(input) {
		return nil, "its inputSchema is no object"
	}
	if _, err := schema.Compile(input); err != nil && !unchecked(err) {
		return nil, "its inputSchema is broken: " + err.Error()
	}
	var err error
	if item.headers, err = server.NewHeaders(input); err != nil {
		raw = rawjson.Replace(raw, "inputSchema", withoutHeaders(input))
	}
	if offered != item.Name {
		raw = replace(raw, "name", offered)
	}
	if text, ok := rules.Describe[item.Name]; ok {
		raw = replace(raw, "description", text)
	}
	return raw, ""
}

// CheckHeaders holds the header fields of a request over HTTP against its arguments, as the tool's definition has it. The
// error is a protocol error.
func (item *Item) CheckHeaders(req *mcp.Request) error {
	return item.headers.Check(req, rawjson.Lookup(req.Params, "arguments"))
}

func (r *ToolRules) offers(tool string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok || err != nil && pattern == tool
	}
	return (r.Only == nil || slices.ContainsFunc(r.Only, matches)) && !slices.ContainsFunc(r.Hide, matches)
}

// replace gives a member another text; its place stays the same.
func replace(object json.RawMessage, name, text string) json.RawMessage {
	return rawjson.Replace(object, name, rawjson.AppendString(nil, text))
}
