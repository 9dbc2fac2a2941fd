package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// Item is one thing that an upstream offers: a tool, a prompt, a resource or a resource template.
// It is immutable.
type Item[U Upstream] struct {
	// Upstream is the upstream that offers the item.
	Upstream U
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
	// TaskSupport is the member execution.taskSupport of a tool of 2025-11-25, which the
	// definitions lack: "optional", "required", or something else for a tool without tasks.
	TaskSupport string

	headers  mcpwire.ToolHeaders   // a tool's parameters that header fields mirror
	template *uritemplate.Template // of a resource template; nil if it cannot be parsed
}

// Quarantined is an item that is not offered because it is broken. If Name is a list method, the
// list could not be read to its end.
type Quarantined struct {
	// Kind and Name identify the item. LocalName is Name after the definition's rename rules, or
	// empty if the item lacks a usable name. Reason names the fault.
	Kind            Kind
	Name, LocalName string
	Reason          string
}

// ToolChange is how the rules of an upstream change one of its tools.
type ToolChange struct {
	// Hide leaves the tool out.
	Hide bool
	// Rename is the tool's name for clients, Describe its description. Empty and nil keep the
	// server's own.
	Rename   string
	Describe *string
}

// NewItem returns the item of a raw definition. rules returns the change of a tool by the server's
// name for it. The item has no Definition if it is hidden. reason says why the definition is
// broken, or is empty.
func NewItem[U Upstream](u U, k Kind, raw json.RawMessage, rules func(tool string) ToolChange) (item *Item[U], reason string) {
	item = &Item[U]{Upstream: u, Kind: k}
	name, ok := rawjson.String(rawjson.Lookup(raw, kindTable[k].key))
	if item.Name = name; !ok || name == "" {
		return item, "it has no " + kindTable[k].key
	}
	if hasDuplicateMember(raw, kindTable[k].key) { // readers disagree about which one counts
		return item, "it has more than one " + kindTable[k].key
	}
	if depth := rawjson.Depth(raw); depth > maxItemDepth {
		return item, fmt.Sprintf("it is nested %d levels deep, and clients read at most %d", depth, maxItemDepth)
	}
	local := name
	raw = withoutForgedMeta(raw)
	item.LocalDefinition = raw
	if k == Tool {
		change := rules(name)
		if change.Hide {
			return item, ""
		}
		local = cmp.Or(change.Rename, name)
		if item.LocalDefinition, reason = item.toolDefinition(raw, local, change.Describe); reason != "" {
			return item, reason
		}
	}
	if k == Template {
		item.template, _ = uritemplate.Parse(name) // nil matches no URI; the template is listed as it is
	}
	item.LocalName, item.QualifiedName = local, u.Name()+"."+local
	item.WireName, item.Definition = name, item.LocalDefinition
	if k == Tool || k == Prompt {
		item.WireName = wireName(u.Name(), local)
		item.Definition = item.wireDefinition()
	}
	return item, ""
}

// maxItemDepth limits the nesting of a definition. Clients refuse a whole list if one of its items
// is deeper than their JSON reader allows.
const maxItemDepth = 120

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

// toolDefinition checks a tool's definition, and replaces its name and, unless it is nil, its
// description. The text says why the definition is broken, or is empty.
func (item *Item[U]) toolDefinition(raw json.RawMessage, local string, description *string) (json.RawMessage, string) {
	input := rawjson.Lookup(raw, "inputSchema")
	if input == nil || !rawjson.IsObject(input) {
		return nil, "its inputSchema is not an object"
	}
	if execution := rawjson.Lookup(raw, "execution"); execution != nil {
		item.TaskSupport, _ = rawjson.String(rawjson.Lookup(execution, "taskSupport"))
		raw = rawjson.Set(raw, "execution", nil)
	}
	if _, err := schema.Compile(input); err != nil && !isUnsupportedSchema(err) {
		return nil, "its inputSchema is broken: " + err.Error()
	}
	var err error
	if item.headers, err = mcpwire.ReadToolHeaders(input); err != nil {
		raw = rawjson.Replace(raw, "inputSchema", withoutHeaderMarks(input))
	}
	if local != item.Name {
		raw = replaceText(raw, "name", local)
	}
	if description != nil {
		raw = replaceText(raw, "description", *description)
	}
	return raw, ""
}

// CheckHeaders compares the header fields of an HTTP request with the call's arguments, as the
// tool's definition demands. The error is a protocol error for the client.
func (item *Item[U]) CheckHeaders(req *mcp.Request) error {
	return item.headers.CheckRequest(req, rawjson.Lookup(req.Params, "arguments"))
}

// replaceText replaces the value of a member by a string, in the same place.
func replaceText(object json.RawMessage, name, text string) json.RawMessage {
	return rawjson.Replace(object, name, rawjson.AppendString(nil, text))
}
