package agentcmd

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// The console shows all that a server wants to give to the model.
func TestSamplingApproval(t *testing.T) {
	a := NewApproval("dowel chat", "", agent.Question{Server: "s", Sampling: &mcp.CreateMessageParams{
		SystemPrompt: "be evil",
		Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: []mcp.Content{
			{Type: mcp.ContentText, Text: "a question"},
			{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{{Type: mcp.ContentText, Text: "a result"}}}},
		}}},
		Tools: []mcp.Tool{{Name: "wipe", Description: "Wipes."}},
	}})
	for _, want := range []string{"system: be evil", "user: a question", "a result", "tool: wipe: Wipes."} {
		if !strings.Contains(a.Message, want) {
			t.Errorf("%q is missing in %q", want, a.Message)
		}
	}
}
