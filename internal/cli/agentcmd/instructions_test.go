package agentcmd

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// The instructions of a server arrive with the first list that has its tools, also through the
// running dowel.
func TestInstructionsOfLateServer(t *testing.T) {
	for _, through := range []bool{false, true} {
		far := hub.New(&hub.Options{})
		defer far.Close()
		front := gateway.New(far, &gateway.Options{StartWait: -1})
		defer front.Close()
		var handler mcp.Handler = front
		var ask func(context.Context) (string, error)
		if through {
			near := daemon.NewProxy(t.Context(), front)
			defer near.Close(t.Context())
			handler, ask = near.Handler(), near.Instructions
		}
		b, err := agent.Dial(t.Context(), handler, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		tools := &instructedTools{Recorder: toolname.Recorder{Toolbox: b}, fetch: ask, toolSwitch: newToolSwitch()}
		for _, come := range []bool{false, true} {
			if come {
				s := server.New("late", "1", &server.Options{Instructions: "Be gentle."})
				defer s.Close()
				server.Tool(s, "nod", "Nods.", func(context.Context, struct{}) (string, error) { return "", nil })
				far.Apply([]hub.Definition{{Name: "late", Target: s, Fingerprint: "1"}}, "it comes late")
				far.Settle(t.Context())
			}
			listed, err := tools.List(t.Context())
			there := slices.ContainsFunc(listed, func(tool mcp.Tool) bool { return tool.Name == "late__nod" })
			if err != nil || there != come || strings.Contains(tools.formatInstructions(), "Be gentle.") != come || !come && tools.formatInstructions() != "" {
				t.Errorf("through %v, come %v: the tool is there: %v, %q, %v", through, come, there, tools.formatInstructions(), err)
			}
		}
	}
}
