package mcp

// Method is a request's name with the types of its parameters and result, for a method of an
// extension or of the program. Its server and its clients use the same value.
type Method[P, R any] struct{ Name string }

// NotificationMethod is a notification's name with the type of its parameters.
type NotificationMethod[P any] struct{ Name string }

// None is the type of parameters or results that hold only _meta.
type None struct {
	Meta Meta `json:"_meta,omitempty"`
}

// Names of the methods that handlers and clients see. Transports handle the methods that only
// legacy revisions have.
const (
	MethodDiscover              = "server/discover"
	MethodListen                = "subscriptions/listen"
	MethodListTools             = "tools/list"
	MethodCallTool              = "tools/call"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
	MethodReadResource          = "resources/read"
	MethodListPrompts           = "prompts/list"
	MethodGetPrompt             = "prompts/get"
	MethodComplete              = "completion/complete"
	MethodCreateMessage         = "sampling/createMessage"
	MethodElicit                = "elicitation/create"
	MethodListRoots             = "roots/list"
)

// Names of the notifications that handlers and clients see. Transports handle the handshake and
// cancellation.
const (
	NotificationProgress         = "notifications/progress"
	NotificationMessage          = "notifications/message"
	NotificationAcknowledged     = "notifications/subscriptions/acknowledged"
	NotificationToolsChanged     = "notifications/tools/list_changed"
	NotificationPromptsChanged   = "notifications/prompts/list_changed"
	NotificationResourcesChanged = "notifications/resources/list_changed"
	NotificationResourceUpdated  = "notifications/resources/updated"
	NotificationRootsChanged     = "notifications/roots/list_changed"
)

// ListParams asks for a page of a list. A nil cursor means the first page; an empty cursor is an
// ordinary cursor.
type ListParams struct {
	Meta   Meta    `json:"_meta,omitempty"`
	Cursor *string `json:"cursor,omitzero"`
}

// Page is the part that all list results share. NextCursor is nil on the last page.
type Page struct {
	NextCursor *string `json:"nextCursor,omitzero"`
}
