package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// providerRequest is a request as the provider has received it.
type providerRequest struct {
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Tools []struct{ Function struct{ Name string } }
}

// --trace shows the steps of a conversation, and --request what the provider has received, also in
// the second message of a resumed conversation.
func TestChatTrace(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	m := newModel(t, `{"turns": [
		{"text": "Let me add.", "calls": [{"name": "cli-test__add", "arguments": {"a": 19, "b": 23}}], "usage": {"input": 120, "output": 8}},
		{"expect": ["42"], "text": "It is 42."}, {"text": "Again 42."}]}`)
	for _, words := range [][]string{{"--approve", "all", "--model", "gpt-test", "--base-url", m.url}, {"--resume"}} {
		if out := runDowel(t, "What is 19 plus 23?\n", withTestServer(t, append([]string{"chat"}, words...)...)...); out.code != exit.OK {
			t.Fatalf("%+v", out)
		}
	}
	out := runDowel(t, "", "chat", "--trace")
	for _, want := range []string{"step 1 · request 1", "120 read, 8 written", "Let me add.", "cli-test.add a=19 b=23", "· ok", "42", "step 2 · request 2", "step 3 · request 3", "What is 19 plus 23?"} {
		if out.code != exit.OK || !strings.Contains(out.stdout, want) {
			t.Errorf("%q is missing in %+v", want, out)
		}
	}
	requests := m.Requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, number := range []string{"1", "2", "3"} {
		var sent providerRequest
		if err := json.Unmarshal([]byte(requests[i].Body), &sent); err != nil {
			t.Fatal(err)
		}
		out := runDowel(t, "", "chat", "--trace", "--request", number, "--json")
		var got session.Prompt
		if err := json.Unmarshal([]byte(out.stdout), &got); err != nil {
			t.Fatalf("%+v: %v", out, err)
		}
		checkRequest(t, sent, &got)
	}
	if out := runDowel(t, "", "chat", "--trace", "--request", "2"); !strings.Contains(out.stdout, "It is") && !strings.Contains(out.stdout, "Let me add.") || !strings.Contains(out.stdout, "3 messages") {
		t.Errorf("%+v", out)
	}
	for words, want := range map[string]string{"--request 1": "--request wants --trace", "--trace --request 9": "there is no request with this number", "--trace=nobody": "there is no session nobody"} {
		if out := runDowel(t, "", append([]string{"chat"}, strings.Fields(words)...)...); out.code == exit.OK || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v", words, out)
		}
	}
}

// checkRequest compares a stored request with the request that the provider has received.
func checkRequest(t *testing.T, sent providerRequest, got *session.Prompt) {
	t.Helper()
	var system string
	if json.Unmarshal(sent.Messages[0].Content, &system) != nil || system != got.System {
		t.Errorf("the instructions are %q, and the provider received %q", got.System, system)
	}
	var texts, all []string
	for _, message := range sent.Messages[1:] {
		texts = append(texts, message.Role)
	}
	for _, message := range got.Messages {
		all = append(all, providerRole(&message))
	}
	if strings.Join(texts, " ") != strings.Join(all, " ") {
		t.Errorf("the messages are %v, and the provider received %v", all, texts)
	}
	if len(sent.Tools) != len(got.Tools) || len(got.Tools) == 0 {
		t.Fatalf("%d tools, and the provider received %d", len(got.Tools), len(sent.Tools))
	}
	for i, tool := range got.Tools {
		if sent.Tools[i].Function.Name != tool.Name {
			t.Errorf("tool %d is %s, and the provider received %s", i, tool.Name, sent.Tools[i].Function.Name)
		}
	}
}

// providerRole returns the role that a message has for the provider.
func providerRole(m *agent.Message) string {
	if m.Role == mcp.RoleUser && len(m.Content) > 0 && m.Content[0].ToolResult != nil {
		return "tool"
	}
	return string(m.Role)
}
