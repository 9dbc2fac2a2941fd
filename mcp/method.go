package mcp

import ()

// Method is a request's name with the types of its parameters and result. Servers and clients use
// the same value.
type Method[P, R any] struct{ Name string }

// NotificationMethod is a notification's name with the type of its parameters.
type NotificationMethod[P any] struct{ Name string }

// None is the type of parameters or results that hold only _meta.
type None struct {
	Meta Meta `json:"_meta,omitempty"`
}

// Names of methods.
const (
	MethodInitialize            = "initialize"
	MethodPing                  = "ping"
	MethodDiscover              = "server/discover"
	MethodListen                = "subscriptions/listen"
	MethodListTools             = "tools/list"
	MethodCallTool              = "tools/call"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
	MethodReadResource          = "resources/read"
	MethodSubscribe             = "resources/subscribe"
	MethodUnsubscribe           = "resources/unsubscribe"
	MethodListPrompts           = "prompts/list"
	MethodGetPrompt             = "prompts/get"
	MethodComplete              = "completion/complete"
	MethodSetLevel              = "logging/setLevel"
	MethodCreateMessage         = "sampling/createMessage"
	MethodElicit                = "elicitation/create"
	MethodListRoots             = "roots/list"
)

// Names of notifications.
const (
	NotificationInitialized          = "notifications/initialized"
	NotificationCancelled            = "notifications/cancelled"
	NotificationProgress             = "notifications/progress"
	NotificationMessage              = "notifications/message"
	NotificationAcknowledged         = "notifications/subscriptions/acknowledged"
	NotificationToolsChanged         = "notifications/tools/list_changed"
	NotificationPromptsChanged       = "notifications/prompts/list_changed"
	NotificationResourcesChanged     = "notifications/resources/list_changed"
	NotificationResourceUpdated      = "notifications/resources/updated"
	NotificationRootsChanged         = "notifications/roots/list_changed"
	NotificationElicitationCompleted = "notifications/elicitation/complete"
)

// Methods that servers answer.
var (
	Discover              = Method[None, DiscoverResult]{MethodDiscover}
	ListTools             = Method[ListParams, ListToolsResult]{MethodListTools}
	CallTool              = Method[CallToolParams, CallToolResult]{MethodCallTool}
	ListResources         = Method[ListParams, ListResourcesResult]{MethodListResources}
	ListResourceTemplates = Method[ListParams, ListResourceTemplatesResult]{MethodListResourceTemplates}
	ReadResource          = Method[ReadResourceParams, ReadResourceResult]{MethodReadResource}
	ListPrompts           = Method[ListParams, ListPromptsResult]{MethodListPrompts}
	GetPrompt             = Method[GetPromptParams, GetPromptResult]{MethodGetPrompt}
	Complete              = Method[CompleteParams, CompleteResult]{MethodComplete}
	Listen                = Method[ListenParams, None]{MethodListen}
)

// Methods that clients answer: live in the legacy era, as input requests in the modern era.
var (
	CreateMessage = Method[CreateMessageParams, CreateMessageResult]{MethodCreateMessage}
	Elicit        = Method[ElicitParams, ElicitResult]{MethodElicit}
	ListRoots     = Method[None, ListRootsResult]{MethodListRoots}
)

// MethodNames maps each known method and notification to itself, for parsers that avoid copying
// names.
func MethodNames() map[string]string {
	names := map[string]string{}
	for _, n := range []string{
		MethodInitialize, MethodPing, MethodDiscover, MethodListen, MethodListTools, MethodCallTool, MethodListResources,
		MethodListResourceTemplates, MethodReadResource, MethodSubscribe, MethodUnsubscribe, MethodListPrompts,
		MethodGetPrompt, MethodComplete, MethodSetLevel, MethodCreateMessage, MethodElicit, MethodListRoots,
		NotificationInitialized, NotificationCancelled, NotificationProgress, NotificationMessage,
		NotificationAcknowledged, NotificationToolsChanged, NotificationPromptsChanged, NotificationResourcesChanged,
		NotificationResourceUpdated, NotificationRootsChanged, NotificationElicitationCompleted,
	} {
		names[n] = n
	}
	return names
}

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
