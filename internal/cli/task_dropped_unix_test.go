//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// /edit takes back the message whose call has become a task. The task continues without the
// conversation: dowel task list shows it, and dowel task wait its result.
func TestEditWithOpenTask(t *testing.T) {
	unsetModels(t)
	u := newTestUser(t)
	signal := filepath.Join(u.home, "signal")
	m := startModel(t, fmt.Sprintf(`{"turns": [
		{"expect": ["Go"], "calls": [{"name": "jobs__await", "arguments": {"path": %q}}]},
		{"expect": ["goes on at its server as a task"], "text": "I wait."},
		{"expect": ["Something else"], "text": "As you like."}]}`, signal))
	u.writeFile(u.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}}}`, testBinary(t), taskServerWord))
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	stopRun(u, m, 1)

	chat := u.resume(u.lastSession(), "/edit\nSomething else\n/export\n")
	_ = chat.Wait() // ProcessState has the result
	said, side := chat.answer.String(), chat.side.String()
	if chat.ProcessState.ExitCode() != exit.OK || !strings.Contains(said, "As you like.") {
		t.Errorf("exit code %d\n%s\n%s", chat.ProcessState.ExitCode(), said, side)
	}
	checkText(t, side, []string{"the task of jobs.await goes on, and the conversation does not get the result; dowel task list shows it"}, nil)
	if _, exported, _ := strings.Cut(said, "# A conversation"); strings.Contains(exported, "jobs") {
		t.Errorf("the conversation still has the call: %s", exported)
	}
	if list := u.expectSuccess("jobs.await", "task", "list"); !strings.Contains(list, "working") {
		t.Error(list)
	}
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.expectSuccess("the file is there", "task", "wait", "1")
}

// The tasks of an agent that the console has started are in dowel task list.
func TestConsoleAgentTaskListed(t *testing.T) {
	unsetModels(t)
	u := newTestUser(t)
	signal := filepath.Join(u.home, "signal")
	m := startModel(t, fmt.Sprintf(`{"turns": [
		{"expect": ["Go"], "calls": [{"name": "jobs__await", "arguments": {"path": %q}}]},
		{"expect": ["goes on at its server as a task"], "text": "I wait."},
		{"expect": ["has ended", "the file is there"], "text": "It is done."}]}`, signal))
	u.writeFile(u.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}},
		"models": {"scripted": {"provider": "openai", "model": "gpt-test", "url": %q}}, "model": "scripted"}`, testBinary(t), taskServerWord, m.url))
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"jobs": hub.Ready})

	var started struct{ ID string }
	u.askDaemon("POST", "/v1/chats", control.ChatOptions{Text: "Go"}, &started)
	var open control.AskList
	polltest.Until(t, "the console asks for an approval", func() bool {
		u.askDaemon("GET", "/v1/asks", nil, &open)
		return len(open.Asks) == 1
	})
	u.askDaemon("POST", fmt.Sprintf("/v1/asks/%v", open.Asks[0].ID), control.AskAnswer{Action: mcp.ElicitAccept}, nil)
	polltest.Until(t, "the agent waits for the task", func() bool { return m.Left() == 1 })
	list := u.expectSuccess("jobs.await", "task", "list")
	if !strings.Contains(list, "working") || !strings.Contains(list, started.ID) {
		t.Errorf("the conversation is %s: %s", started.ID, list)
	}
	u.expectSuccess("jobs.await: working", "task", "get", "1")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the agent gets the result", func() bool { return m.Left() == 0 })
	polltest.Until(t, "the list is empty", func() bool { return !strings.Contains(u.expectSuccess("", "task", "list"), "jobs.await") })
}

// askDaemon sends a request of the console to the running dowel, and decodes the answer unless into
// is nil.
func (u *testUser) askDaemon(method, path string, body, into any) {
	u.t.Helper()
	socket := control.NewClient(filepath.Join(u.home, "dowel", "dowel.sock"))
	encoded, err := json.Marshal(body)
	if err != nil {
		u.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(u.t.Context(), method, strings.TrimSuffix(socket.Gateway(), "/mcp")+path, bytes.NewReader(encoded))
	if err != nil {
		u.t.Fatal(err)
	}
	answer, err := socket.HTTP().Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		u.t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
	if into != nil {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			u.t.Fatal(err)
		}
	}
}
