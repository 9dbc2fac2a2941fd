package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// An upstream makes no tasks for clients of the gateway, which does not forward requests about tasks.
// The client's other extensions reach the upstream.
func TestUpstreamsMakeNoTasks(t *testing.T) {
	t.Parallel()
	s := server.New("up", "1", nil)
	declared := func(ctx context.Context, _ struct{}) (string, error) {
		return string(server.RequestFrom(ctx).ClientCapabilities), nil
	}
	server.Tool(s, "may", "", declared, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMay, After: 1}})
	server.Tool(s, "must", "", declared, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
		g, _ := over(t, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: revision}}})
		c := dial(t, g, client.Options{Extensions: []mcp.Extension{mcpwire.TasksExtension(), {ID: "com.example/other"}}})
		got, err := client.Call[string](t.Context(), c, "up__may", nil)
		if err != nil || strings.Contains(got, "tasks") || strings.Contains(got, "com.example/other") != revision.Modern() {
			t.Errorf("%s: %s, %v", revision, got, err)
		}
		_, err = client.Call[string](t.Context(), c, "up__must", nil)
		var missing *mcp.Error
		if refused := errors.As(err, &missing) && missing.Code == mcp.CodeMissingCapability; refused != revision.Modern() || !refused && err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
}
