//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// The running dowel continues a task after the end of dowel run. The resumed conversation gets the end
// of the task.
func TestAgentTaskResumed(t *testing.T) {
	unsetModels(t)
	u := newTestUser(t)
	signal := filepath.Join(u.home, "signal")
	m := startModel(t, fmt.Sprintf(`{"turns": [
		{"expect": ["First"], "calls": [{"name": "jobs__await", "arguments": {"path": %q}}]},
		{"expect": ["the file is there"], "text": "Seen."},
		{"expect": ["Go"], "calls": [{"name": "jobs__await", "arguments": {"path": %q}}]},
		{"expect": ["goes on at its server as a task"], "text": "I wait."},
		{"expect": ["And now?"], "text": "Not yet."},
		{"expect": ["has ended", "the file is there"], "text": "It is done."}]}`, u.home, signal))
	u.writeFile(u.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}}}`, testBinary(t), taskServerWord))
	u.expectSuccess("Seen.", "run", "First", "--approve", "all", "--model", "gpt-test", "--base-url", m.url) // in one process

	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"jobs": hub.Ready})

	run := u.newCommand("run", "Go", "--approve", "all", "--model", "gpt-test", "--base-url", m.url, "-v")
	var said strings.Builder
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the model waits for the task", func() bool { return m.Left() == 2 })
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // ProcessState has the result
	if code := run.ProcessState.ExitCode(); code != exit.Interrupted {
		t.Errorf("exit code %d\n%s", code, &said)
	}

	chat := u.newCommand("chat", "--resume", "--approve", "all")
	chat.Stdin = strings.NewReader("And now?\n")
	var answer, side strings.Builder
	chat.Stdout, chat.Stderr = &answer, &side
	if err := chat.Start(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the resumed conversation waits for the task", func() bool { return m.Left() == 1 })
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = chat.Wait() // ProcessState has the result
	if chat.ProcessState.ExitCode() != exit.OK || !strings.HasSuffix(answer.String(), "It is done.\n") {
		t.Errorf("exit code %d\n%s\n%s", chat.ProcessState.ExitCode(), &answer, &side)
	}
}
