package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
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
	p := onTerminal(t, "chat", "--model", "gpt-test", "--base-url", m.url, "--config", config)
	p.expect("/model changes it")
	p.typeText("hello\r")
	p.expect("waiting for slow to start")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.expect("good morning")
	p.endChat()
}
