package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// windowsUser is a user of Windows with a home of their own. A user has one pipe, whatever the
// home: the tests fail if a dowel of this user runs already.
type windowsUser struct {
	t    *testing.T
	home string
	up   *exec.Cmd

	mu  sync.Mutex
	log bytes.Buffer // the output of up
}

// Write appends to the output of dowel up.
func (u *windowsUser) Write(text []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.log.Write(text)
}

func (u *windowsUser) output() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.log.String()
}

func (u *windowsUser) env() []string {
	env := os.Environ()
	for _, name := range []string{"USERPROFILE", "APPDATA", "LOCALAPPDATA", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		env = append(env, name+"="+u.home)
	}
	return env
}

// run runs dowel to its end.
func (u *windowsUser) run(words ...string) (stdout string, err error) {
	cmd := newCommand(u.t, words...)
	cmd.Dir, cmd.Env = u.home, u.env()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("dowel %s: %w: %s%s\nup: %s", strings.Join(words, " "), err, &out, &problems, u.output())
	}
	return out.String(), err
}

// expect runs dowel, which must succeed and write want.
func (u *windowsUser) expect(want string, words ...string) string {
	u.t.Helper()
	out, err := u.run(words...)
	if err != nil {
		u.t.Fatal(err)
	}
	if !strings.Contains(out, want) {
		u.t.Fatalf("dowel %s wrote %q, want %q in it\nup: %s", strings.Join(words, " "), out, want, u.output())
	}
	return out
}

// start starts dowel up with servers and returns the URL of its gateway.
func (u *windowsUser) start(entries map[string][]string) (url string) {
	u.t.Helper()
	servers := map[string]any{}
	for name, words := range entries {
		servers[name] = map[string]any{"command": testBinary(u.t), "args": append([]string{"serve"}, words...)}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		u.t.Fatal(err)
	}
	file := filepath.Join(u.home, "servers.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		u.t.Fatal(err)
	}
	u.up = exec.Command(testBinary(u.t), "up", "--config", file, "--http", "0")
	u.up.Dir, u.up.Env, u.up.Stdout, u.up.Stderr = u.home, u.env(), u, u
	if err := u.up.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(u.kill)
	polltest.UntilNil(u.t, func() error {
		if url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(u.output()); url == "" {
			return fmt.Errorf("up does not say where it is: %s", u.output())
		}
		return nil
	})
	return url
}

// kill ends dowel up as the task manager does.
func (u *windowsUser) kill() {
	if u.up != nil {
		_ = u.up.Process.Kill()
		_ = u.up.Wait()
		u.up = nil
	}
}

// TestWindowsJourney runs the program as a user of Windows does.
func TestWindowsJourney(t *testing.T) {
	u := &windowsUser{t: t, home: t.TempDir()}
	u.expect("windows/", "version")
	u.expect(`{"sum":3}`, "call", "add", "a=1", "b=2", "--", testBinary(t), "serve", "everything")

	data := filepath.Join(u.home, "kv.db")
	url := u.start(map[string][]string{"ev": {"everything"}, "kv": {"kv", "path=" + data}})
	u.expect(`{"sum":3}`, "call", "ev.add", "a=1", "b=2") // the first command waits for no other
	u.expect("stored", "call", "kv.set", "key=a", "value=one")
	u.expect("one", "call", "kv.get", "key=a")
	u.expect("ready", "status")

	var before control.Status
	if err := json.Unmarshal([]byte(u.expect("{", "status", "--json")), &before); err != nil || len(before.Servers) != 2 {
		t.Fatalf("%+v, %v", before, err)
	}
	u.expect("", "servers", "restart", "kv")
	u.expect("one", "call", "kv.get", "key=a")

	if out, err := u.run("up", "--http", "0"); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("a second dowel: %s, %v", out, err)
	}
	t.Run("gateway", func(t *testing.T) { callGateway(t, url, u.expect("Bearer ", "status", "--token")) })

	u.kill()
	polltest.UntilNil(t, func() error { return os.Remove(data) }) // it succeeds once the server has ended
	if out, err := u.run("status"); err == nil || !strings.Contains(err.Error(), "no dowel is running") {
		t.Errorf("status without a dowel: %s, %v", out, err)
	}
}

// callGateway calls a tool over HTTP. header is the output of dowel status --token.
func callGateway(t *testing.T, url, header string) {
	_, token, _ := strings.Cut(strings.TrimSpace(header), ": ")
	authorize := func(context.Context) (http.Header, error) { return http.Header{"Authorization": {token}}, nil }
	c, err := client.Dial(t.Context(), streamable.URL{URL: url, Header: authorize}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	result, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "ev__add", Arguments: json.RawMessage(`{"a": 1, "b": 2}`)})
	if err != nil || !strings.Contains(fmt.Sprintf("%s", result.StructuredContent), "3") {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestWindowsDown ends dowel up by a command.
func TestWindowsDown(t *testing.T) {
	u := &windowsUser{t: t, home: t.TempDir()}
	u.start(map[string][]string{"ev": {"everything"}})
	u.expect("has ended", "down")
	if err := u.up.Wait(); err != nil {
		t.Errorf("up ended with %v: %s", err, u.output())
	}
	u.up = nil
}

// TestWindowsShell checks that the shell server names the alternatives on this system.
func TestWindowsShell(t *testing.T) {
	u := &windowsUser{t: t, home: t.TempDir()}
	if out, err := u.run("serve", "shell"); err == nil || !strings.Contains(err.Error(), "run dowel in WSL") {
		t.Errorf("%s, %v", out, err)
	}
}
