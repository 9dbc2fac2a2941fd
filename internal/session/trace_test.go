package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

func tool(name string) mcp.Tool {
	return mcp.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// samePrompt compares a stored request with the request that was made.
func samePrompt(t *testing.T, path string, number int, want agent.Conversation) {
	t.Helper()
	got, err := session.ReadPrompt(path, number)
	must(t, err)
	same(t, got.Messages, want.Messages)
	names := func(all []mcp.Tool) (names string) {
		for _, one := range all {
			names += one.Name + " "
		}
		return names
	}
	if got.System != want.System || names(got.Tools) != names(want.Tools) || got.MaxTokens != want.MaxTokens || len(got.Tokens.PerTool) != len(want.Tools) || len(got.Tokens.PerMessage) != len(want.Messages) {
		t.Errorf("request %d: %+v", number, got)
	}
}

// Each request is kept exactly: when the agent has added to the user's words, when a server uses
// the model meanwhile, after a compaction, and when the tools have changed.
func TestPrompts(t *testing.T) {
	t.Parallel()
	s := begun(t)
	asked, reply := user(mcp.Text("what is it?")), model(mcp.Text("let me see"), call("1"))
	must(t, s.Message(asked))
	sent := user(mcp.Text("what is it?"), mcp.Text("(the tools have changed)"))
	requests := []agent.Conversation{{System: "be kind", Tools: []mcp.Tool{tool("a")}, Messages: []agent.Message{sent}}}
	must(t, s.Prompt(requests[0]))
	must(t, s.Message(reply))
	must(t, s.Decided(agent.Approval{Call: mcp.ToolUse{ID: "1"}, Server: "a", Allowed: true, By: "user"}, "the console"))
	must(t, s.Started("1"))
	sample := agent.Conversation{System: "a server's", MaxTokens: 10, Messages: []agent.Message{user(mcp.Text("sum it up"))}}
	requests = append(requests, sample)
	must(t, s.Prompt(sample))
	must(t, s.Result(mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{mcp.Text("long text")}}))
	cut := []agent.Message{sent, reply, user(result("1", "long …"))}
	requests = append(requests, agent.Conversation{System: "be kind", Tools: []mcp.Tool{tool("a"), tool("b")}, Messages: cut})
	must(t, s.Prompt(requests[2]))
	must(t, s.Compacted(900, 100))
	short := []agent.Message{user(mcp.Text("summary: it is long"))}
	requests = append(requests, agent.Conversation{System: "be kind", Tools: []mcp.Tool{tool("b")}, Messages: short})
	must(t, s.Prompt(requests[3]))
	must(t, s.Message(model(mcp.Text("done"))))
	must(t, s.Message(user(mcp.Text("thanks"))))
	for i, want := range requests {
		samePrompt(t, s.Path(), i+1, want)
	}
	if _, err := session.ReadPrompt(s.Path(), 5); err == nil {
		t.Error("a request that was not made is found")
	}
	text, err := os.ReadFile(s.Path())
	must(t, err)
	if n := strings.Count(string(text), "does a"); n != 2 {
		t.Errorf("the tool is stored %d times", n)
	}
	trace, err := session.ReadTrace(s.Path())
	must(t, err)
	var kinds []string
	for _, e := range trace.Entries {
		kinds = append(kinds, fmt.Sprint(e.Kind, " ", e.Prompt, " ", e.Text))
	}
	if got := strings.Join(kinds, "\n"); got != "user 0 what is it?\nreply 1 let me see\nrequest 2 \nrequest 3 \ncompacted 0 from about 900 to 100 tokens\nreply 4 done\nuser 0 thanks" {
		t.Error(got)
	}
	made := trace.Entries[1].Calls[0]
	if made.Status != "ok" || made.Result != "long text" || made.Decision == nil || made.Decision.At != "the console" || made.Started.IsZero() {
		t.Errorf("%+v", made)
	}
	_, held, err := session.Load(s.Path())
	must(t, err)
	same(t, held.Messages, append(short, model(mcp.Text("done")), user(mcp.Text("thanks"))))
}

// A trace of a file that ends within a call, has a damaged line, and knows no requests.
func TestTraceOfOldFile(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/old.jsonl"
	must(t, os.WriteFile(path, []byte(`{"session":{"version":1,"id":"x","began":"2026-01-02T15:04:05Z"}}
{"at":"2026-01-02T15:04:05Z","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}
{"at":"2026-01-02T15:04:06Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a__b","input":{}}]}}
{"at":"2026-01-02T15:04:06Z","event":"decided","data":{"call":"1","server":"a","allowed":false,"by":"mode","reason":"no"}}
not JSON
{"at":"2026-01-02T15:04:07Z","keep":0}
{"at":"2026-01-02T15:04:07Z","message":{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":"more"}]}}
{"at":"2026-01-02T15:04:07Z","message":{"role":"assi`), 0o600))
	trace, err := session.ReadTrace(path)
	must(t, err)
	if len(trace.Entries) != 2 || trace.Damaged != 1 || trace.Prompts != 0 || trace.Entries[1].Calls[0].Status != "lost" || trace.Entries[1].Calls[0].Decision.Reason != "no" {
		t.Errorf("%+v", trace)
	}
}
