//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/session"
)

// The running dowel continues a task after the end of dowel run. The resumed conversation gets the
// end of the task.
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
	stopRun(u, m, 2)

	chat := u.newCommand("chat", "--resume="+u.lastSession(), "--approve", "all")
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

// stopRun begins a task in dowel run, and stops it when left turns of the model are left.
func stopRun(u *testUser, m *model, left int) {
	u.t.Helper()
	run := u.newCommand("run", "Go", "--approve", "all", "--model", "gpt-test", "--base-url", m.url, "-v")
	var said strings.Builder
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		u.t.Fatal(err)
	}
	polltest.Until(u.t, "the model waits for the task", func() bool { return m.Left() == left })
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		u.t.Fatal(err)
	}
	_ = run.Wait() // ProcessState has the result
	if code := run.ProcessState.ExitCode(); code != exit.Interrupted {
		u.t.Errorf("exit code %d\n%s", code, &said)
	}
}

// A fork and its original both get the end of a task that was open at the fork, in two processes at
// once.
func TestForkWithOpenTask(t *testing.T) {
	unsetModels(t)
	u := newTestUser(t)
	signal := filepath.Join(u.home, "signal")
	end := `{"expect": ["has ended", "the file is there"], "text": "It is done."}`
	m := startModel(t, fmt.Sprintf(`{"turns": [
		{"expect": ["Go"], "calls": [{"name": "jobs__await", "arguments": {"path": %q}}]},
		{"expect": ["goes on at its server as a task"], "text": "I wait."},
		{"expect": ["In the fork"], "text": "Not yet."},
		{"expect": ["In the first"], "text": "Not yet."}, %s, %s]}`, signal, end, end))
	u.writeFile(u.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}}}`, testBinary(t), taskServerWord))
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	stopRun(u, m, 4)
	first := u.lastSession()

	fork := u.resume(first, "/fork\nIn the fork?\n")
	polltest.Until(t, "the fork waits for the task", func() bool { return m.Left() == 3 })
	original := u.resume(first, "In the first?\n")
	polltest.Until(t, "the original waits for the task", func() bool { return m.Left() == 2 })
	list := u.expectSuccess("jobs.await", "task", "list")
	second := ""
	for _, path := range u.sessionFiles() {
		if id := strings.TrimSuffix(filepath.Base(path), ".jsonl"); id != first {
			second = id
		}
	}
	if strings.Count(list, "jobs.await") != 1 || !strings.Contains(list, "working") || !strings.Contains(list, first+", "+second) {
		t.Errorf("%s and %s wait for the task: %s", first, second, list)
	}
	u.expectSuccess("jobs.await: working", "task", "get", "1")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, chat := range []*resumedChat{fork, original} {
		_ = chat.Wait() // ProcessState has the result
		if chat.ProcessState.ExitCode() != exit.OK || !strings.HasSuffix(chat.answer.String(), "It is done.\n") {
			t.Errorf("exit code %d\n%s\n%s", chat.ProcessState.ExitCode(), &chat.answer, &chat.side)
		}
	}
	checkText(t, fork.side.String(), []string{"the task of jobs.await goes on: both conversations get the result"}, nil)
	if list := u.expectSuccess("", "task", "list"); strings.Contains(list, "jobs") {
		t.Error(list)
	}
}

// resumedChat is a running dowel chat that continues a conversation.
type resumedChat struct {
	*exec.Cmd
	answer, side strings.Builder
}

// resume starts dowel chat with a saved conversation and lines of input.
func (u *testUser) resume(id, input string) *resumedChat {
	u.t.Helper()
	chat := &resumedChat{Cmd: u.newCommand("chat", "--resume="+id, "--approve", "all")}
	chat.Stdin, chat.Stdout, chat.Stderr = strings.NewReader(input), &chat.answer, &chat.side
	if err := chat.Start(); err != nil {
		u.t.Fatal(err)
	}
	return chat
}

// lastSession returns the ID of the conversation that was changed last.
func (u *testUser) lastSession() string {
	u.t.Helper()
	all, err := session.List(u.sessions())
	if err != nil || len(all) == 0 {
		u.t.Fatal(all, err)
	}
	return all[0].ID
}

// sessions returns the folder of the saved conversations.
func (u *testUser) sessions() string { return filepath.Join(u.home, "dowel", "sessions") }

// sessionFiles returns the files of the saved conversations.
func (u *testUser) sessionFiles() []string {
	u.t.Helper()
	found, err := filepath.Glob(filepath.Join(u.sessions(), "*.jsonl"))
	if err != nil || len(found) == 0 {
		u.t.Fatal(found, err)
	}
	return found
}

// A task at a server that a conversation has started for itself is listed as long as its process
// lives, and cannot be reached.
func TestPrivateTaskListed(t *testing.T) {
	unsetModels(t)
	u := newTestUser(t)
	m := startModel(t, fmt.Sprintf(`{"turns": [{"calls": [{"name": "cli-test__await", "arguments": {"path": %q}}]}, {"text": "I wait."}]}`, filepath.Join(u.home, "never")))
	run := u.newCommand("run", "Go", "--approve", "all", "--model", "gpt-test", "--base-url", m.url, "--", testBinary(t), taskServerWord)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the model waits for the task", func() bool { return m.Left() == 0 })
	list := u.expectSuccess("working", "task", "list")
	if !strings.Contains(list, u.lastSession()) || !strings.Contains(list, ".await") {
		t.Error(list)
	}
	if out := u.runDowel("task", "wait", "1"); out.code != exit.Connection || !strings.Contains(out.stderr, "has started the server for itself") {
		t.Errorf("%+v", out)
	}
	if err := run.Process.Kill(); err != nil { // it cannot take the task from the list
		t.Fatal(err)
	}
	_ = run.Wait()
	u.expectSuccess("gone", "task", "list")
	if list := u.expectSuccess("", "task", "list"); strings.Contains(list, "await") {
		t.Error(list)
	}
}
