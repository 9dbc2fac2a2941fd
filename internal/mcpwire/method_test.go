package mcpwire_test

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
)

func TestCacheable(t *testing.T) {
	for method, want := range map[string]bool{
		"server/discover": true, "tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true, "resources/read": true,
		"tools/call": false, "prompts/get": false, "completion/complete": false, "subscriptions/listen": false, "": false,
	} {
		if mcpwire.Cacheable(method) != want {
			t.Errorf("Cacheable(%s) = %v", method, !want)
		}
	}
}

func TestMethodNamesAreThoseOfTheSchemas(t *testing.T) {
	for name, same := range mcpwire.MethodNames() {
		if name != same || name == "" {
			t.Errorf("%q is mapped to %q", name, same)
		}
	}
	for _, m := range []string{"initialize", "ping", "server/discover", "subscriptions/listen", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "sampling/createMessage", "elicitation/create", "roots/list",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/message", "notifications/subscriptions/acknowledged", "notifications/tools/list_changed",
		"notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated", "notifications/roots/list_changed", "notifications/elicitation/complete"} {
		if mcpwire.MethodNames()[m] != m {
			t.Errorf("%s is missing", m)
		}
	}
}
