package mcpwire

import "github.com/dowel-mcp/dowel/mcp"

// Names of the methods of legacy revisions. A transport handles them, so that handlers and clients
// do not see them.
const (
	MethodInitialize  = "initialize"
	MethodPing        = "ping"
	MethodSubscribe   = "resources/subscribe"
	MethodUnsubscribe = "resources/unsubscribe"
	MethodSetLevel    = "logging/setLevel"
)

// Names of the notifications that a transport handles.
const (
	NotificationInitialized          = "notifications/initialized"
	NotificationCancelled            = "notifications/cancelled"
	NotificationElicitationCompleted = "notifications/elicitation/complete"
)

// MethodNames maps each known method and notification to itself, for parsers that avoid copying
// names.
func MethodNames() map[string]string {
	names := map[string]string{}
	for _, n := range []string{
		MethodInitialize, MethodPing, mcp.MethodDiscover, mcp.MethodListen, mcp.MethodListTools, mcp.MethodCallTool, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, MethodSubscribe, MethodUnsubscribe, mcp.MethodListPrompts,
		mcp.MethodGetPrompt, mcp.MethodComplete, MethodSetLevel, mcp.MethodCreateMessage, mcp.MethodElicit, mcp.MethodListRoots,
		NotificationInitialized, NotificationCancelled, mcp.NotificationProgress, mcp.NotificationMessage,
		mcp.NotificationAcknowledged, mcp.NotificationToolsChanged, mcp.NotificationPromptsChanged, mcp.NotificationResourcesChanged,
		mcp.NotificationResourceUpdated, mcp.NotificationRootsChanged, NotificationElicitationCompleted,
	} {
		names[n] = n
	}
	return names
}

// Cacheable reports whether the method's complete results carry caching hints.
func Cacheable(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates,
		mcp.MethodReadResource, MethodListSkills, MethodGetSkill:
		return true
	}
	return false
}

// MayAsk reports whether a result of the method may be input_required.
func MayAsk(method string) bool {
	return method == mcp.MethodCallTool || method == mcp.MethodGetPrompt || method == mcp.MethodReadResource
}

// AllowsBatches reports whether the revision allows JSON-RPC batches.
func AllowsBatches(r mcp.Revision) bool { return r == mcp.Revision20250326 }

// LoggingLevels returns all levels, least severe first.
func LoggingLevels() []mcp.LoggingLevel {
	return []mcp.LoggingLevel{
		mcp.LevelDebug, mcp.LevelInfo, mcp.LevelNotice, mcp.LevelWarning,
		mcp.LevelError, mcp.LevelCritical, mcp.LevelAlert, mcp.LevelEmergency,
	}
}
