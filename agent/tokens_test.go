package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// Before the first answer tokens are estimated; then the provider's figure is shared out to the
// parts.
func TestTokens(t *testing.T) {
	b := newBench("a__read", "b__read")
	b.tools[0].Description = strings.Repeat("word", 100)
	m := &script{t: t, window: 1000, replies: []reply{says("", "a__read {}"), says("done")}, input: func(c agent.Conversation) int { return 100 * len(c.Messages) }}
	a := newTrustingAgent(m, b, &agent.Options{System: strings.Repeat("four", 50), Messages: []agent.Message{
		{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text(strings.Repeat("日本", 50))}},
		{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("four")}, Usage: &agent.Usage{Input: 7, Cached: 5, Output: 3}},
	}})
	tokens := a.Tokens()
	if !tokens.Estimated || tokens.System != 50 || tokens.Tools != 0 || !slices.Equal(tokens.PerMessage, []int{104, 5}) || tokens.Total != 159 || tokens.Window != 1000 ||
		tokens.Spent != (agent.Usage{Input: 7, Cached: 5, Output: 3}) {
		t.Errorf("%+v", tokens)
	}
	for e, err := range a.Run(t.Context(), mcp.Text("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if isReply(e) && len(m.conversations) == 2 {
			break
		}
	}
	tokens = a.Tokens()
	before := tokens.System + tokens.Tools // the last request had five messages and took 500
	for _, n := range tokens.PerMessage[:5] {
		before += n
	}
	if tokens.Estimated || before < 497 || before > 503 || len(tokens.PerMessage) != 6 || tokens.Total != tokens.System+tokens.Tools+tokens.Messages {
		t.Errorf("the last request took %d of 500: %+v", before, tokens)
	}
	if got := tokens.PerTool; len(got) != 2 || got[0].Name != "a__read" || !got[0].Offered || got[0].Tokens < 5*got[1].Tokens || tokens.Tools != got[0].Tokens+got[1].Tokens {
		t.Errorf("%+v", got)
	}
	if tokens.Spent != (agent.Usage{Input: 300 + 500 + 7, Cached: 5, Output: 23}) {
		t.Errorf("%+v", tokens.Spent)
	}
	a.SetModel(&script{t: t})
	if tokens = a.Tokens(); !tokens.Estimated || tokens.Window != 0 {
		t.Errorf("%+v", tokens)
	}
}

// Tools that are not offered do not count, and can be seen all the same.
func TestTokensOfDeferredTools(t *testing.T) {
	a := newTrustingAgent(&script{t: t, replies: []reply{says("done")}}, newToolCrowd(300), nil)
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	tokens, sum, offered := a.Tokens(), 0, 0
	for _, tool := range tokens.PerTool {
		if tool.Offered {
			sum, offered = sum+tool.Tokens, offered+1
		}
	}
	if len(tokens.PerTool) != 304 || offered != 1 || sum != tokens.Tools || !slices.IsSortedFunc(tokens.PerTool, func(a, b agent.ToolTokens) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d tools, %d offered, %d of %d tokens", len(tokens.PerTool), offered, sum, tokens.Tools)
	}
}
