package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// The first message waits visibly for servers that are starting.
func TestChatAwaitsServers(t *testing.T) {
	ownState(t)
	folder := t.TempDir()
	config, gate := filepath.Join(folder, "dowel.json"), filepath.Join(folder, "gate")
	slow := "while [ ! -e '" + gate + "' ]; do sleep 0.05; done; exec '" + testBinary(t) + "' " + serverWord
	entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"slow": map[string]any{"command": "sh", "args": []string{"-c", slow}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, entry, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newModel(t, `{"turns": [{"text": "good morning"}]}`)
	p := onTerminal(t, "chat", "--plain", "--model", "gpt-test", "--base-url", m.url, "--config", config)
	p.expect("/model changes it")
	p.typeText("hello\r")
	p.expect("waiting for slow to start")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.expect("good morning")
	p.endChat()
}

// A warning about the configuration is shown once.
func TestChatWarnsOnce(t *testing.T) {
	t.Parallel()
	user := newTestUser(t)
	user.writeFile(user.projectFile(), `{"models": {}}`)
	m := startModel(t, `{"turns": []}`)
	p := startOnTerminal(t, user.newCommand("chat", "--plain", "--model", "gpt-test", "--base-url", m.url, "--server", "everything"), 80, 24)
	p.expect("servers: everything (")
	p.endChat()
	if n := strings.Count(strings.Join(strings.Fields(p.output()), " "), "models has no effect in a project"); n != 1 {
		t.Errorf("warned %d times: %s", n, p.output())
	}
}

// The first prompt does not wait for servers. The model learns later which servers became ready.
func TestChatSlowServer(t *testing.T) {
	ownState(t)
	gate := filepath.Join(t.TempDir(), "gate")
	m := newModel(t, `{"turns": [{"expect": ["hello"], "text": "Hello."}, {"expect": ["These tools have become available: sh__", "and now"], "expectBody": ["Be gentle."], "calls": [{"name": "sh__echo", "arguments": {"message": "hi"}}]}, {"expect": ["hi"], "text": "done"}]}`)
	slow := "while [ ! -e '" + gate + "' ]; do sleep 0.05; done; exec '" + testBinary(t) + "' " + serverWord
	p := onTerminal(t, "chat", "--plain", "--trust-annotations", "--model", "gpt-test", "--base-url", m.url, "--", "sh", "-c", slow)
	p.expect(prompt)
	p.typeText("hello\r")
	p.expect("Hello.\r\n")
	p.expect(prompt)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.expect("servers: sh (17 tools)")
	p.typeText("and now\r")
	p.expect("new: sh (17 tools)")
	p.expect("sh.echo")
	p.expect("done\r\n")
	p.endChat()
}

// The problem of a server appears above the line that is being typed, which stays.
func TestChatMissingServer(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [{"expect": ["half a line, and the rest"], "text": "done"}]}`)
	p := onTerminal(t, "chat", "--plain", "--model", "gpt-test", "--base-url", m.url, "--", "sh", "-c", "sleep 0.3; echo out of cheese >&2; exit 3")
	p.expect(prompt)
	p.typeText("half a line")
	p.expect("the tools of sh are missing")
	p.expect("servers: none is ready") // the last message before the prompt
	p.expect(prompt + "half a line")
	p.typeText(", and the rest\r")
	p.expect("done\r\n")
	p.endChat()
}

// Without a model, chat fails and leaves the terminal unchanged.
func TestChatWithoutModel(t *testing.T) {
	ownState(t)
	unsetModels(t)
	p := onTerminal(t, "chat", "--server", "everything")
	p.expect("there is no model to work with")
	p.expectExit(exit.Usage)
	if text := p.output(); strings.Contains(text, "what you type") || strings.Contains(text, "****") {
		t.Errorf("it greets first, or hides an example: %s", text)
	}
}

// The last line of the full screen counts the servers that are ready and that have failed, and has
// the cost of the conversation if the model's price is known.
func TestChatScreenStatus(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	m := startModel(t, `{"turns": [{"text": "Hello.", "usage": {"input": 100000, "output": 50000}}]}`)
	u.writeFile(u.userFile(), fmt.Sprintf(`{"model": "priced", "models": {"priced": {"provider": "openai", "model": "gpt-test", "url": %q, "price": {"input": 2, "output": 10}}},
		"mcpServers": {"good": %s, "broken": {"command": "no-such-program"}}}`, m.url, u.builtInEntry("kv", "")))
	p := startOnTerminal(t, u.newCommand("chat"), 80, 24)
	p.awaitScreen("1 ready 1 failed", "priced")
	p.typeText("/servers why broken\r")
	p.awaitScreen("no-such-program")
	p.typeText("hello\r")
	p.awaitScreen("Hello.", "$0.70")
	p.typeText("\x04")
	p.expectExit(exit.OK)
}
