//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// A task is started, seen, answered, awaited, cancelled and forgotten by commands that are
// processes of their own.
func TestTaskCommands(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	if out := p.runDowel("call", "everything.echo", "message=hi", "--task"); out.code != exit.Usage || !strings.Contains(out.stderr, "start dowel up") {
		t.Errorf("without a running dowel: %d, %s", out.code, out.stderr)
	}
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}}}`, testBinary(t), taskServerWord))
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	p.expectSuccess("quick", "call", "jobs.quick", "--task")
	p.expectSuccess("", "task", "list")
	p.expectSuccess("1\n", "call", "jobs.work", "--task")
	p.expectSuccess(`"name":"2"`, "call", "jobs.work", "--task", "--json")
	polltest.Until(t, "both tasks ask", func() bool {
		return strings.Count(p.expectSuccess("jobs.work", "task", "list"), "input_required") == 2
	})
	p.expectSuccess("Who are you?", "task", "get", "1")
	p.expectSuccess(`"status":"input_required"`, "task", "get", "1", "--json")
	for words, want := range map[string]string{"task answer 1 --question nope value=x": "no question nope is open", "task get 7": "no task called", "task answer 1 wrong=x": "wrong"} {
		if out := p.runDowel(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %d, %s", words, out.code, out.stderr)
		}
	}
	p.expectSuccess("", "task", "answer", "1", "value=Ann")
	p.expectSuccess("done for Ann\n", "task", "wait", "1")
	p.expectSuccess("done for Ann", "task", "get", "1")
	p.expectSuccess("", "task", "cancel", "2")
	if out := p.runDowel("task", "wait", "2"); out.code == 0 || !strings.Contains(out.stderr, "cancelled") {
		t.Errorf("%d, %s", out.code, out.stderr)
	}
	p.stopDaemon()
	if out := p.runDowel("task", "wait", "1"); out.code != exit.Connection {
		t.Errorf("after the end of the running dowel: %d, %s", out.code, out.stderr)
	}
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	if list := p.expectSuccess("the process of the server jobs that ran the task has ended", "task", "list"); strings.Count(list, "failed") != 2 {
		t.Error(list)
	}
	p.stopDaemon()
	if err := os.Remove(filepath.Join(p.home, "dowel", "keys.json")); err != nil { // the ids are invalid without it
		t.Fatal(err)
	}
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	if list := p.expectSuccess("gone", "task", "list"); strings.Count(list, "gone") != 2 {
		t.Error(list)
	}
	if list := p.expectSuccess("", "task", "list"); strings.Contains(list, "jobs") {
		t.Error(list)
	}
}

// With gateway.tasks.after, a slow call of a tool that makes no task itself becomes one.
func TestSlowCallBecomesTask(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}}, "gateway": {"tasks": {"after": "20ms"}}}`, testBinary(t), taskServerWord))
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	p.expectSuccess("1\n", "call", "jobs.linger", "--task")
	polltest.Until(t, "the message of the task", func() bool {
		return strings.Contains(p.expectSuccess("working", "task", "get", "1"), "lingering")
	})
	p.expectSuccess("", "task", "cancel", "1")
	p.expectSuccess("cancelled", "task", "get", "1")
}
