//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A task of a server that lives on, and a session of HTTP, are still there after a restart of the
// running dowel.
func TestRestartKeepsTasksAndSessions(t *testing.T) {
	t.Parallel()
	handler := streamable.Handler(newTaskServer(), nil)
	upstream := httptest.NewServer(handler)
	t.Cleanup(func() {
		_ = handler.Shutdown(context.Background())
		upstream.Close()
	})
	p := newTestUser(t)
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"type": "http", "url": %q}}}`, upstream.URL))
	gateway := p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	p.expectSuccess("1\n", "call", "jobs.work", "--task")
	session := p.postMessage(gateway, "", initializeMessage)
	ended := p.postMessage(gateway, "", initializeMessage)
	if status := p.requestSession(http.MethodDelete, gateway, ended, ""); status != http.StatusOK && status != http.StatusNoContent {
		t.Errorf("the end of a session: status %d", status)
	}
	p.stopDaemon()

	gateway = p.startDaemon("--new-key")
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	p.postMessage(gateway, session, listMessage)
	if status := p.requestSession(http.MethodPost, gateway, ended, listMessage); status != http.StatusNotFound {
		t.Errorf("a session that has ended before the restart: status %d, want 404", status)
	}
	polltest.Until(t, "the task asks", func() bool {
		return strings.Contains(p.expectSuccess("jobs.work", "task", "list"), "input_required")
	})
	p.stopDaemon()

	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	p.expectSuccess("", "task", "answer", "1", "value=Ann")
	p.expectSuccess("done for Ann\n", "task", "wait", "1")
}

// A dowel that is killed loses no end of a task that it has made itself, and fails the others with
// the cause. A dowel that cannot keep tasks makes none, and says why in its status, which starts
// nothing.
func TestKillKeepsOwnTasks(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"jobs": {"command": %q, "args": [%q]}}, "gateway": {"tasks": {"after": "20ms"}}}`, testBinary(t), taskServerWord))
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	folder := filepath.Join(p.home, "dowel", "tasks")
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the store of tasks has started before the first task: %v", err)
	}
	p.expectSuccess("1\n", "call", "jobs.linger", "--task")
	p.expectSuccess("2\n", "call", "jobs.linger", "--task")
	p.expectSuccess("3\n", "call", "jobs.nap", "--task")
	p.expectSuccess("rested\n", "task", "wait", "3")
	p.expectSuccess("", "task", "cancel", "2")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed

	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	p.expectSuccess("the dowel that ran the call has ended", "task", "get", "1")
	p.expectSuccess("cancelled", "task", "get", "2")
	p.expectSuccess("rested", "task", "get", "3")
	p.stopDaemon()

	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	p.writeFile(folder, "no folder")
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"jobs": hub.Ready})
	if s := p.runDowel("status"); strings.Contains(s.stderr, "tasks") {
		t.Errorf("status before the first task: %s", s.stderr)
	}
	p.expectSuccess("rested\n", "call", "jobs.nap", "--task") // no task, but the result
	if s := p.runDowel("status"); !strings.Contains(s.stderr, "tasks cannot be kept in "+folder) || !strings.Contains(s.stderr, "not a directory") {
		t.Errorf("status does not say why there is no task: %s", s.stderr)
	}
	p.expectSuccess(`"problem":"tasks cannot be kept in `, "status", "--json")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	p.runDowel("status")
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("status has started the store of tasks: %v", err)
	}
	p.expectSuccess("", "call", "jobs.linger", "--task")
	if s := p.runDowel("status"); strings.Contains(s.stderr, "tasks") {
		t.Errorf("status after a stored task: %s", s.stderr)
	}
}

// Without a file for its keys, dowel runs with random ones and says so.
func TestKeysCannotBeKept(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	folder := filepath.Join(p.home, "dowel")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p.writeFile(filepath.Join(folder, "keys.json"), "{}")
	p.startDaemon()
	polltest.Until(t, "the warning", func() bool {
		return strings.Contains(p.output(), "cannot be kept") && strings.Contains(p.output(), "remove the file")
	})
}

// postMessage sends a message to the gateway, which must accept it, and returns the id of the
// session.
func (u *testUser) postMessage(gateway, session, message string) string {
	u.t.Helper()
	resp, text := u.sendInSession(http.MethodPost, gateway, session, message)
	if resp.StatusCode != http.StatusOK || !strings.Contains(text, `"result"`) {
		u.t.Fatalf("%s: %s, %s", message, resp.Status, text)
	}
	return resp.Header.Get("Mcp-Session-Id")
}

// requestSession sends a request of a session to the gateway, and returns the status.
func (u *testUser) requestSession(method, gateway, session, message string) int {
	u.t.Helper()
	resp, _ := u.sendInSession(method, gateway, session, message)
	return resp.StatusCode
}

// sendInSession sends a request to the gateway. An empty session opens one.
func (u *testUser) sendInSession(method, gateway, session, message string) (resp *http.Response, text string) {
	u.t.Helper()
	name, token := u.readTokenHeader()
	return u.sendWithHeader(name, token, method, gateway, session, message)
}

// readTokenHeader returns the header that authorizes requests to the gateway. It runs dowel.
func (u *testUser) readTokenHeader() (name, token string) {
	u.t.Helper()
	name, token, _ = strings.Cut(strings.TrimSpace(u.expectSuccess("", "status", "--token")), ": ")
	return name, token
}

// sendWithHeader is sendInSession with a header of readTokenHeader.
func (u *testUser) sendWithHeader(name, token, method, gateway, session, message string) (resp *http.Response, text string) {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), method, gateway+"/mcp", strings.NewReader(message))
	if err != nil {
		u.t.Fatal(err)
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", name: token, "Mcp-Session-Id": session} {
		if value != "" {
			req.Header.Set(key, value)
		}
	}
	if resp, err = http.DefaultClient.Do(req); err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}
