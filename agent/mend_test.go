package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

func from(role mcp.Role, content ...mcp.Content) agent.Message {
	return agent.Message{Role: role, Content: content}
}

// An incomplete conversation is completed for providers.
func TestMend(t *testing.T) {
	const user, model = mcp.RoleUser, mcp.RoleAssistant
	call := func(id string) mcp.Content { return mcp.UseTool(id, "read", json.RawMessage(`{}`)) }
	result := func(id string) mcp.Content { return mcp.ToolResult(id, mcp.Text("result of "+id)) }
	text := mcp.Text("text")
	for name, tt := range map[string]struct {
		said []agent.Message
		want string
	}{
		"whole":             {[]agent.Message{from(user, text), from(model, text, call("1"), call("2")), from(user, result("1"), result("2"), text)}, "text|text 1 2|=1 =2 text"},
		"no result at all":  {[]agent.Message{from(user, text), from(model, call("1"))}, "text|1|?1"},
		"one is missing":    {[]agent.Message{from(user, text), from(model, call("1"), call("2")), from(user, result("2"))}, "text|1 2|?1 =2"},
		"words instead":     {[]agent.Message{from(user, text), from(model, call("1")), from(user, text)}, "text|1|?1 text"},
		"behind words":      {[]agent.Message{from(user, text), from(model, call("1")), from(user, text), from(user, result("1"))}, "text|1|=1 text"},
		"behind an empty":   {[]agent.Message{from(user, text), from(model, call("1")), from(model), from(user, result("1"))}, "text|1|=1"},
		"two replies":       {[]agent.Message{from(user, text), from(model, call("1")), from(model, text)}, "text|1|?1|text"},
		"twice":             {[]agent.Message{from(user, text), from(model, call("1")), from(user, result("1"), result("1"))}, "text|1|=1"},
		"of no call":        {[]agent.Message{from(user, text), from(model, text), from(user, result("1"), text)}, "text|text|text"},
		"of no call, alone": {[]agent.Message{from(user, text), from(model, text), from(user, result("1"))}, "text|text"},
		"an empty reply":    {[]agent.Message{from(user, text), from(model, mcp.Text(" \n")), from(user, text)}, "text text"},
		"nothing":           {nil, ""},
	} {
		var got []string
		mended := agent.Mend(tt.said)
		for _, m := range mended {
			var blocks []string
			for _, c := range m.Content {
				switch {
				case c.ToolUse != nil:
					blocks = append(blocks, c.ToolUse.ID)
				case c.ToolResult != nil && c.ToolResult.IsError && strings.Contains(c.ToolResult.Content[0].Text, "it may have run, or not"):
					blocks = append(blocks, "?"+c.ToolResult.ToolUseID)
				case c.ToolResult != nil:
					blocks = append(blocks, "="+c.ToolResult.ToolUseID)
				default:
					blocks = append(blocks, c.Text)
				}
			}
			got = append(got, strings.Join(blocks, " "))
		}
		if all := strings.Join(got, "|"); all != tt.want {
			t.Errorf("%s: %s, want %s", name, all, tt.want)
		}
		check(t, mended)
		a := newTrustingAgent(&script{t: t, replies: []reply{says("done")}}, newBench("read"), &agent.Options{Messages: tt.said})
		expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
	}
}

// After a panic of Approve or of the caller's loop, the conversation can continue.
func TestPanicOfTheCaller(t *testing.T) {
	for _, where := range []string{"approve", "replied", "ended"} {
		m := &script{t: t, replies: []reply{says("", "write {}", "write {}"), says("done")}}
		a := newTrustingAgent(m, newBench("write"), &agent.Options{Approve: func(context.Context, agent.Question) (agent.Decision, error) {
			if where == "approve" {
				panic("no terminal")
			}
			return agent.Decision{Allow: true}, nil
		}})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", where)
				}
			}()
			for e := range a.Run(t.Context(), mcp.Text("go")) {
				replied := isReply(e)
				_, ended := e.(agent.CallEnded)
				if replied && where == "replied" || ended && where == "ended" {
					panic("cannot show that")
				}
			}
		}()
		expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
		if got := a.Messages()[2]; len(got.Content) != 3 || got.Content[2].Text != "go" {
			t.Errorf("%s: %+v", where, got)
		}
	}
}
