package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// slyText is text that a terminal would mostly hide.
const slyText = "ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f"

const slyTextShown = `ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f`

// The approval question hides no character of the call.
func TestApprovalsReveal(t *testing.T) {
	quoted, err := json.Marshal(map[string]any{"command": slyText, "two": slyText + "\nmore", "nested": []string{slyText}, slyText: 1})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{
		"arguments":          formatArguments(quoted),
		"no object":          formatArguments(json.RawMessage(slyText)),
		"the line of a call": {agentview.BrieflyInput(quoted, 1000)},
		"sampling":           formatSampling(&mcp.CreateMessageParams{SystemPrompt: slyText, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text(slyText)}}}}),
		"the tool":           {toolname.Display("server__" + slyText)},
		"the server":         {displayServer(agent.Question{Server: slyText})},
	}
	for what, lines := range shown {
		text := strings.Join(lines, "\n")
		if term.Reveal(text) != text {
			t.Errorf("%s: something cannot be seen in %q", what, text)
		}
		if !strings.Contains(text, "rm -rf ~") || what != "the line of a call" && !strings.Contains(text, slyTextShown) {
			t.Errorf("%s: something is left out in %s", what, text)
		}
	}
}
