package chat

import (
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// /edit takes back the last input alone: not the results of calls or the earlier messages that the
// agent has joined with it, and nothing if the input was compacted.
func TestFindInput(t *testing.T) {
	user := func(blocks ...mcp.Content) agent.Message { return agent.Message{Role: mcp.RoleUser, Content: blocks} }
	model := agent.Message{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("reply")}}
	result := mcp.ToolResult("1", mcp.Text("result"))
	third := []mcp.Content{mcp.Text("third")}
	for name, tt := range map[string]struct {
		messages  []agent.Message
		input     []mcp.Content
		at, block int
	}{
		"alone":                  {[]agent.Message{user(mcp.Text("first")), model, user(mcp.Text("third")), model}, third, 2, 0},
		"behind results":         {[]agent.Message{user(mcp.Text("first")), model, user(result, mcp.Text("third"))}, third, 2, 1},
		"behind a failed one":    {[]agent.Message{user(mcp.Text("second"), mcp.Text("third"))}, third, 0, 1},
		"before results":         {[]agent.Message{user(mcp.Text("third")), model, user(result), model}, third, 0, 0},
		"before a note":          {[]agent.Message{user(mcp.Text("third"), mcp.Text("You are repeating yourself."))}, third, 0, 0},
		"compacted":              {[]agent.Message{user(mcp.Text("first"), mcp.Text("a summary")), model}, third, -1, 0},
		"resumed":                {[]agent.Message{user(mcp.Text("first")), model, user(mcp.Text("last")), model, user(result), model}, nil, 2, 0},
		"resumed and joined":     {[]agent.Message{user(mcp.Text("first"), mcp.Text("a summary")), model}, nil, -1, 0},
		"an empty conversation":  {nil, third, -1, 0},
		"an input of two blocks": {[]agent.Message{user(result, mcp.Text("third"), mcp.Text("a file"))}, []mcp.Content{mcp.Text("third"), mcp.Text("a file")}, 0, 1},
	} {
		at, block := findInput(tt.messages, tt.input)
		if at != tt.at || at >= 0 && block != tt.block {
			t.Errorf("%s: message %d, block %d; want %d, %d", name, at, block, tt.at, tt.block)
		}
	}
}
