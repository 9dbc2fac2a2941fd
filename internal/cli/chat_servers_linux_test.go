package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// Five servers, each a process, work in one conversation on the full screen. The status line counts
// them and the server that does not start.
func TestChatScreenFiveServers(t *testing.T) {
	u := newTestUser(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := startModel(t, `{"turns": [
		{"calls": [
			{"name": "files__read", "arguments": {"path": "note.txt"}}, {"name": "shell__run", "arguments": {"command": "echo from the shell"}},
			{"name": "kv__set", "arguments": {"key": "k", "value": "from the store"}}, {"name": "everything__echo", "arguments": {"message": "from everything"}},
			{"name": "jobs__quick", "arguments": {}}]},
		{"expect": ["from the file", "from the shell", "from everything", "quick"], "calls": [{"name": "kv__get", "arguments": {"key": "k"}}]},
		{"expect": ["from the store"], "text": "All five have answered."}]}`)
	binary := testBinary(t)
	u.writeFile(u.userFile(), fmt.Sprintf(`{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": %q}}, "mcpServers": {
		"files": {"command": %[2]q, "args": ["serve", "files", %[3]q]}, "shell": {"command": %[2]q, "args": ["serve", "shell"]},
		"kv": {"command": %[2]q, "args": ["serve", "kv"]}, "everything": {"command": %[2]q, "args": ["serve", "everything"]},
		"jobs": {"command": %[2]q, "args": [%[4]q]}, "broken": {"command": "false"}}}`, m.url, binary, "roots="+folder, taskServerWord))
	p := startOnTerminal(t, u.newCommand("chat", "--screen", "--approve", "all"), 80, 24)
	p.awaitScreen("5 ready 1 failed")
	p.typeText("go\r")
	p.awaitScreen("All five have answered.", "kv.get")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
}
