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

// Kind is the kind of an [Item].
type Kind int

const (
	// Tool is a tool, identified by its name.
	Tool Kind = iota
	// Prompt is a prompt, identified by its name.
	Prompt
	// Resource is a resource, identified by its URI.
	Resource
	// Template is a resource template, identified by its URI template.
	Template
	kinds
)

// kindTable holds the protocol's names for each kind.
var kindTable = [kinds]struct {
	name, method, list, key, changed string
}{
	Tool:     {"tool", mcp.MethodListTools, "tools", "name", mcp.NotificationToolsChanged},
	Prompt:   {"prompt", mcp.MethodListPrompts, "prompts", "name", mcp.NotificationPromptsChanged},
	Resource: {"resource", mcp.MethodListResources, "resources", "uri", mcp.NotificationResourcesChanged},
	Template: {"resource template", mcp.MethodListResourceTemplates, "resourceTemplates", "uriTemplate", mcp.NotificationResourcesChanged},
}

// String returns the kind in words, such as "resource template".
func (k Kind) String() string { return kindTable[k].name }

// ListKey returns the member of a list result that holds items of the kind, such as "tools".
func (k Kind) ListKey() string { return kindTable[k].list }

// Item is one thing that an upstream offers: a tool, a prompt, a resource or a resource template.
// It is immutable.
type Item struct {
	// Upstream is the upstream that offers the item.
	Upstream *Upstream
	// Kind says which kind of item it is.
	Kind Kind
	// Name is the server's own name for it: a name, a URI or a template. LocalName is Name after
	// the definition's Rename rules.
	Name, LocalName string
	// WireName is the item's name in the catalog of all upstreams. QualifiedName is the form for
	// people, such as "files.read_file".
	WireName, QualifiedName string
	// Definition is the item's definition under WireName, LocalDefinition under LocalName. Both
	// follow the definition's rules.
	Definition, LocalDefinition json.RawMessage

	headers  server.Headers        // a tool's parameters that header fields mirror
	template *uritemplate.Template // of a resource template; nil if it cannot be parsed
}

// Quarantined is an item that is not offered because it is broken. If Name is a list method, the
// list could not be read to its end.
type Quarantined struct {
	// Kind and Name identify the item. Reason names the fault.
	Kind   Kind
	Name   string
	Reason string
}

// newItem returns the item of a raw definition. The item has no Definition if the rules hide it.
// reason says why the definition is broken, or is empty.
func newItem(u *Upstream, k Kind, raw json.RawMessage, rules ToolRules) (item *Item, reason string) {
	item = &Item{Upstream: u, Kind: k}
	name, ok := rawjson.String(rawjson.Lookup(raw, kindTable[k].key))
	if item.Name = name; !ok || name == "" {
		return item, "it has no " + kindTable[k].key
	}
	if hasDuplicateMember(raw, kindTable[k].key) { // readers disagree about which one counts
		return item, "it has more than one " + kindTable[k].key
	}
	local := name
	if k == Tool || k == Prompt {
		raw = withoutForgedMeta(raw)
	}
	item.LocalDefinition = raw
	if k == Tool {
		if !rules.allowsTool(name) {
			return item, ""
		}
		local = cmp.Or(rules.Rename[name], name)
		if item.LocalDefinition, reason = item.toolDefinition(raw, local, rules); reason != "" {
			return item, reason
		}
	}
	if k == Template {
		item.template, _ = uritemplate.Parse(name) // nil matches no URI; the template is listed as it is
	}
	item.LocalName, item.QualifiedName = local, u.name+"."+local
	item.WireName, item.Definition = name, item.LocalDefinition
	if k == Tool || k == Prompt {
		item.WireName = wireName(u.name, local)
		item.Definition = item.wireDefinition()
	}
	return item, ""
}

// hasDuplicateMember reports whether an object has a member more than once.
func hasDuplicateMember(object json.RawMessage, name string) bool {
	n := 0
	for it := rawjson.Object(object); it.Next(); {
		if string(it.Key) == name {
			n++
		}
	}
	return n > 1
}

// toolDefinition checks a tool's definition and applies the rules. reason says why it is broken, or
// is empty.
func (item *Item) toolDefinition(raw json.RawMessage, local string, rules ToolRules) (json.RawMessage, string) {
	input := rawjson.Lookup(raw, "inputSchema")
	if input == nil || !rawjson.IsObject(input) {
		return nil, "its inputSchema is no object"
	}
	if _, err := schema.Compile(input); err != nil && !isUnsupportedSchema(err) {
		return nil, "its inputSchema is broken: " + err.Error()
	}
	var err error
	if item.headers, err = server.NewHeaders(input); err != nil {
		raw = rawjson.Replace(raw, "inputSchema", withoutHeaderMarks(input))
	}
	if local != item.Name {
		raw = replaceText(raw, "name", local)
	}
	if text, ok := rules.Describe[item.Name]; ok {
		raw = replaceText(raw, "description", text)
	}
	return raw, ""
}

// CheckHeaders compares the header fields of an HTTP request with the call's arguments, as the
// tool's definition demands. The error is a protocol error for the client.
func (item *Item) CheckHeaders(req *mcp.Request) error {
	return item.headers.Check(req, rawjson.Lookup(req.Params, "arguments"))
}

// allowsTool reports whether the rules offer a tool. A pattern that cannot be parsed is a plain
// name.
func (r *ToolRules) allowsTool(tool string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok || err != nil && pattern == tool
	}
	return (r.Only == nil || slices.ContainsFunc(r.Only, matches)) && !slices.ContainsFunc(r.Hide, matches)
}

// replaceText replaces the value of a member by a string, in the same place.
func replaceText(object json.RawMessage, name, text string) json.RawMessage {
	return rawjson.Replace(object, name, rawjson.AppendString(nil, text))
}
