package catalog

import "github.com/dowel-mcp/dowel/mcp"

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
	// Kinds is the number of kinds.
	Kinds
)

// kindTable holds the protocol's names for each kind.
var kindTable = [Kinds]struct {
	name, method, list, key, changed string
}{
	Tool:     {"tool", mcp.MethodListTools, "tools", "name", mcp.NotificationToolsChanged},
	Prompt:   {"prompt", mcp.MethodListPrompts, "prompts", "name", mcp.NotificationPromptsChanged},
	Resource: {"resource", mcp.MethodListResources, "resources", "uri", mcp.NotificationResourcesChanged},
	Template: {"resource template", mcp.MethodListResourceTemplates, "resourceTemplates", "uriTemplate", mcp.NotificationResourcesChanged},
}

// String returns the kind in words, such as "resource template".
func (k Kind) String() string { return kindTable[k].name }

// ListMethod returns the method that lists items of the kind.
func (k Kind) ListMethod() string { return kindTable[k].method }

// ListKey returns the member of a list result that holds items of the kind, such as "tools".
func (k Kind) ListKey() string { return kindTable[k].list }

// ChangedMethod returns the method of the notification that the list of the kind has changed.
// Resources and templates share one.
func (k Kind) ChangedMethod() string { return kindTable[k].changed }
