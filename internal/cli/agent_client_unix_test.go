//go:build unix

package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
)

// Each conversation is a client of its own at the running dowel, also if that is the process of the
// agent: it shares no connection, limit or question with another conversation, and keeps its tasks
// when another process continues it.
func TestConversationIsClient(t *testing.T) {
	unsetModels(t)
	u := newTestUser(t)
	log := filepath.Join(u.home, "audit.jsonl")
	turn := `{"calls": [{"name": "everything__echo", "arguments": {"message": "hello"}}]}, {"text": "Done."}`
	m := startModel(t, `{"turns": [`+strings.Join([]string{turn, turn, turn, turn}, ", ")+`]}`)
	u.writeFile(u.userFile(), fmt.Sprintf(`{"mcpServers": {"everything": %s}, "gateway": {"audit": %q}}`, u.builtInEntry("everything", ""), log))
	model := []string{"--approve", "all", "--model", "gpt-test", "--base-url", m.url}
	run := func() { u.expectSuccess("Done.", append([]string{"run", "Go"}, model...)...) }
	run()              // is the running dowel itself
	resume := func() { // in another process
		u.expectSuccess("Done.", append([]string{"run", "--resume", "Again"}, model...)...)
	}
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"everything": hub.Ready})
	resume()
	run()
	resume()

	var clients []string
	for _, r := range readAudit(t, log) {
		if r.Method == "tools/call" && r.Outcome == "ok" {
			clients = append(clients, r.Client)
		}
	}
	if len(clients) != 4 || clients[0] != clients[1] || clients[2] != clients[3] || clients[0] == clients[2] || !strings.HasPrefix(clients[0], "agent 20") {
		t.Errorf("the calls of two conversations are of %q", clients)
	}
}
