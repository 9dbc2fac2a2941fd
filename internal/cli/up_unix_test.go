//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// testUser is a user with their own home and project, and perhaps a running dowel.
type testUser struct {
	t             *testing.T
	home, project string
	variables     []string // further ones for the running dowel

	cmd        *exec.Cmd
	mu         sync.Mutex
	outputText strings.Builder // stdout and stderr of the running dowel
}

// homeVariables name the environment variables for a user's folders.
var homeVariables = []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}

func newTestUser(t *testing.T) *testUser {
	t.Helper()
	p := &testUser{t: t, home: t.TempDir(), project: t.TempDir()}
	t.Cleanup(p.stopDaemon)
	return p
}

// newCommand returns a command that runs dowel as the user in the project.
func (u *testUser) newCommand(words ...string) *exec.Cmd {
	cmd := newCommand(u.t, words...)
	cmd.Dir = u.project
	cmd.Env = os.Environ()
	for _, name := range homeVariables {
		cmd.Env = append(cmd.Env, name+"="+u.home)
	}
	return cmd
}

// runDowel runs dowel and returns its result.
func (u *testUser) runDowel(words ...string) output {
	u.t.Helper()
	cmd := u.newCommand(words...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // ProcessState has the result
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// expectSuccess runs dowel and returns its stdout, which must contain want.
func (u *testUser) expectSuccess(want string, words ...string) string {
	u.t.Helper()
	out := u.runDowel(words...)
	if out.code != 0 || !strings.Contains(out.stdout, want) {
		u.t.Errorf("dowel %s: exit code %d, want 0 and %q\n%s%s", strings.Join(words, " "), out.code, want, out.stdout, out.stderr)
	}
	return out.stdout
}

// startDaemon starts dowel up and returns the gateway's URL.
func (u *testUser) startDaemon(words ...string) (url string) {
	u.t.Helper()
	one := u.newCommand() // used for its fields only, since its context ends before the cleanup
	u.cmd = &exec.Cmd{Path: one.Path, Args: append([]string{"dowel", "up", "--http", "0"}, words...), Dir: one.Dir, Env: append(one.Env, u.variables...)}
	out, err := u.cmd.StdoutPipe()
	if err == nil {
		u.cmd.Stderr = writerFunc(u.appendOutput)
		err = u.cmd.Start()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			u.appendOutput(lines.Text() + "\n")
			if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); m != "" {
				select {
				case found <- m:
				default:
				}
			}
		}
	}()
	select {
	case url = <-found:
	case <-time.After(polltest.Limit):
		u.t.Fatal("dowel up does not say where it is:\n" + u.output())
	}
	return url
}

type writerFunc func(string)

func (w writerFunc) Write(text []byte) (int, error) { w(string(text)); return len(text), nil }

var _ io.Writer = writerFunc(nil)

func (u *testUser) appendOutput(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.outputText.WriteString(text)
}

func (u *testUser) output() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.outputText.String()
}

// stopDaemon ends the running dowel with Ctrl-C.
func (u *testUser) stopDaemon() {
	if u.cmd == nil {
		return
	}
	_ = u.cmd.Process.Signal(syscall.SIGINT)
	_ = u.cmd.Wait()
	if code := u.cmd.ProcessState.ExitCode(); code != 0 {
		u.t.Errorf("dowel up ended with %d:\n%s", code, u.output())
	}
	u.cmd = nil
}

func (u *testUser) writeFile(path, text string) {
	u.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// userFile is the user's own configuration file, projectFile the project's.
func (u *testUser) userFile() string    { return filepath.Join(u.home, "dowel", "dowel.json") }
func (u *testUser) projectFile() string { return filepath.Join(u.project, "dowel.json") }

// serverStates returns the servers of the running dowel by name.
func (u *testUser) serverStates() map[string]control.Server {
	u.t.Helper()
	var s control.Status
	if out := u.runDowel("status", "--json"); json.Unmarshal([]byte(out.stdout), &s) != nil {
		u.t.Fatalf("status: %s%s\n%s", out.stdout, out.stderr, u.output())
	}
	servers := map[string]control.Server{}
	for _, server := range s.Servers {
		servers[server.Name] = server
	}
	return servers
}

// awaitStates waits until the servers have these states.
func (u *testUser) awaitStates(want map[string]hub.Status) (now map[string]control.Server) {
	u.t.Helper()
	polltest.UntilNil(u.t, func() error {
		now = u.serverStates()
		same := len(now) == len(want)
		for name, status := range want {
			same = same && now[name].Status == status
		}
		if !same {
			return fmt.Errorf("the servers are %+v, want %v\n%s", now, want, u.output())
		}
		return nil
	})
	return now
}

// builtInEntry returns an entry for a built-in server.
func (u *testUser) builtInEntry(name string, more string) string {
	return fmt.Sprintf(`{"command": %q, "args": ["serve", %q]%s}`, testBinary(u.t), name, more)
}

// Without a configuration, up runs the built-in servers.
func TestUpWithNothing(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	url := p.startDaemon()
	p.awaitStates(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	p.expectSuccess("hi\n", "call", "everything__echo", "message=hi", "--url", url+"/mcp")
	p.expectSuccess("hi\n", "call", "everything__echo", "message=hi", "--url", url+"/sse")
	p.expectSuccess("hi\n", "call", "echo", "message=hi", "--url", url+"/mcp/everything", "--revision", "2025-06-18")
	p.expectSuccess("hi\n", "call", "everything.echo", "message=hi")
	p.expectSuccess("kv__", "tools")
	if second := p.runDowel("up", "--http", "0"); second.code == 0 || !strings.Contains(second.stderr, "running already") {
		t.Errorf("a second dowel: %d, %s", second.code, second.stderr)
	}
	p.stopDaemon()
	if out := p.runDowel("status"); out.code != exit.Connection || !strings.Contains(out.stderr, "dowel up") {
		t.Errorf("%d, %s", out.code, out.stderr)
	}
}

func TestUpWithFiles(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{
		// mine
		"mcpServers": {
			"mine": `+p.builtInEntry("everything", `, "env": {"SECRET_TOKEN": "not-to-be-seen"}`)+`,
			"broken": {"comand": "npx"},
			"unset": {"command": "npx", "env": {"TOKEN": "${NO_SUCH_VARIABLE}"}},
			"absent": {"command": "no-such-program-anywhere"}
		},
	}`)
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": `+p.builtInEntry("kv", "")+`}}`)
	p.startDaemon()
	servers := p.awaitStates(map[string]hub.Status{
		"mine": hub.Ready, "broken": hub.NeedsConfiguration, "unset": hub.NeedsConfiguration, "absent": hub.Failed, "theirs": hub.NeedsTrust,
	})
	for name, parts := range map[string][]string{
		"broken": {"comand", "command", "dowel.json:5:"}, "unset": {"NO_SUCH_VARIABLE", "dowel.json:6:"}, "theirs": {"dowel trust theirs"},
	} {
		for _, part := range parts {
			if !strings.Contains(servers[name].Cause, part) {
				t.Errorf("%s does not say %q: %s", name, part, servers[name].Cause)
			}
		}
	}
	if s := servers["absent"]; s.Problem == "" || s.Advice == "" {
		t.Errorf("%+v", s)
	}
	p.expectSuccess("hi\n", "call", "mine.echo", "message=hi")
	if out := p.runDowel("call", "theirs.get", "key=x"); out.code == 0 || !strings.Contains(out.stdout+out.stderr, "trust") {
		t.Errorf("an untrusted server is called: %+v", out)
	}
	p.expectSuccess("env.SECRET_TOKEN", "config", "explain", "mine")
	if out := p.runDowel("config", "explain", "mine"); strings.Contains(out.stdout, "not-to-be-seen") {
		t.Error("a secret is shown")
	}
	if out := p.runDowel("config", "check"); out.code != exit.Failed || !strings.Contains(out.stdout, "dowel.json:5:") {
		t.Errorf("%+v", out)
	}
	p.expectSuccess("allowed", "trust", "theirs", "--yes")
	p.awaitStates(map[string]hub.Status{
		"mine": hub.Ready, "broken": hub.NeedsConfiguration, "unset": hub.NeedsConfiguration, "absent": hub.Failed, "theirs": hub.Ready,
	})
}

// A change of a file takes effect at once and restarts only the affected servers.
func TestUpFollows(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"same": `+p.builtInEntry("everything", "")+`, "gone": `+p.builtInEntry("weather", "")+`}}`)
	p.startDaemon()
	since := p.awaitStates(map[string]hub.Status{"same": hub.Ready, "gone": hub.Ready})["same"].Since
	p.writeFile(p.userFile(), `{"mcpServers": {"same": `)
	polltest.Until(t, "a status that names the broken file", func() bool {
		return strings.Contains(p.runDowel("status").stderr, "keeps its previous configuration")
	})
	p.awaitStates(map[string]hub.Status{"same": hub.Ready, "gone": hub.Ready})
	p.writeFile(p.userFile(), `{"mcpServers": {"same": `+p.builtInEntry("everything", "")+`, "new": `+p.builtInEntry("weather", "")+`}}`)
	p.awaitStates(map[string]hub.Status{"same": hub.Ready, "new": hub.Ready})
	p.expectSuccess("Written", "servers", "add", "added", "--", testBinary(t), "serve", "everything")
	p.awaitStates(map[string]hub.Status{"same": hub.Ready, "new": hub.Ready, "added": hub.Ready})
	p.expectSuccess("", "servers", "disable", "new")
	p.awaitStates(map[string]hub.Status{"same": hub.Ready, "new": hub.Disabled, "added": hub.Ready})
	p.expectSuccess("", "servers", "enable", "new")
	p.expectSuccess("Written", "servers", "remove", "added")
	now := p.awaitStates(map[string]hub.Status{"same": hub.Ready, "new": hub.Ready})
	if now["same"].Since != since {
		t.Error("a server was restarted that has not changed")
	}
	p.expectSuccess("", "servers", "restart", "same")
	if !strings.Contains(p.output(), "dowel.json") {
		t.Error("it does not say what is wrong with the file that was broken:\n" + p.output())
	}
}

// dowel up --stdio offers the servers of the running dowel, or else of the configuration.
func TestUpStdio(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`}}`)
	tools := func() string { return p.expectSuccess("one__echo", "tools", "--", testBinary(t), "up", "--stdio") }
	tools()
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"one": hub.Ready})
	tools()
	p.expectSuccess(`"listChanged":true`, "discover", "--json", "--revision", "2025-06-18", "--", testBinary(t), "up", "--stdio")
}

func TestToolSearch(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	url := p.startDaemon("--tool-search")
	p.awaitStates(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	var list struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(p.expectSuccess("", "tools", "--json", "--url", url+"/mcp")), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"search_tools", "describe_tool", "call_tool", "dowel__status"}) {
		t.Errorf("%v", names)
	}
	p.expectSuccess("weather__get_alerts", "call", "search_tools", "query=storm warnings in a state", "--url", url+"/mcp")
	p.expectSuccess(`"inputSchema"`, "call", "describe_tool", "name=everything__echo", "--url", url+"/mcp")
	p.expectSuccess("hi\n", "call", "call_tool", "name=everything__echo", `arguments={"message":"hi"}`, "--url", url+"/mcp")
	// The flag works for the client of a process beside the running dowel, too.
	for words, want := range map[string][]string{
		"up --stdio --tool-search": {"search_tools", "describe_tool", "call_tool", "dowel__status"},
		"up --stdio":               nil,
	} {
		own := newTestUser(t)
		own.startDaemon()
		own.awaitStates(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
		out := own.runDowel(append([]string{"tools", "--json", "--", testBinary(t)}, strings.Fields(words)...)...)
		if strings.Contains(out.stdout, "search_tools") != (want != nil) || strings.Contains(out.stdout, "everything__echo") == (want != nil) || strings.Contains(out.stderr, "ignored") {
			t.Errorf("%s: %s%s", words, out.stdout, out.stderr)
		}
		if want != nil {
			own.expectSuccess("hi\n", "call", "call_tool", "name=everything__echo", `arguments={"message":"hi"}`, "--", testBinary(t), "up", "--stdio", "--tool-search")
		}
	}
	if out := p.runDowel("call", "call_tool", "name=everything__ecco", "--url", url+"/mcp"); out.code != exit.Failed || !strings.Contains(out.stderr, "everything__echo") {
		t.Errorf("%+v", out)
	}
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	cursor := filepath.Join(p.home, ".cursor", "mcp.json")
	p.writeFile(cursor, `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"T": "${env:T}"}}}}`)
	if out := p.expectSuccess("+ a", "import", "--dry-run"); !strings.Contains(out, "${env:T}") {
		t.Error(out)
	}
	p.writeFile(filepath.Join(p.home, "Code", "User", "mcp.json"),
		`{"inputs": [{"type": "promptString", "id": "port", "default": "8080"}], "servers": {"v": {"type": "http", "url": "http://127.0.0.1:${input:port}/mcp"}}}`)
	p.expectSuccess("Written", "import", "--from", "cursor,vscode", "--yes")
	p.expectSuccess("url = http://127.0.0.1:8080/mcp", "config", "explain", "v")
	p.expectSuccess("No servers to add", "import", "--yes")
	p.writeFile(cursor, `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"T": "${env:T}", "A_TOKEN": "not-to-be-shown"}}}}`)
	if out := p.expectSuccess("+ ", "export", "--to", "cursor", "--dry-run"); strings.Contains(out, "not-to-be-shown") {
		t.Error(out)
	}
	if out := p.expectSuccess("mcp.json.bak", "export", "--to", "cursor"); !strings.Contains(out, `Cursor now starts dowel as its server "dowel"`) {
		t.Error(out)
	}
	text, err := os.ReadFile(cursor)
	if err != nil || !strings.Contains(string(text), `"--stdio"`) || !strings.Contains(string(text), `"${env:T}"`) {
		t.Errorf("%s, %v", text, err)
	}
	p.expectSuccess("it is dowel itself", "import", "--dry-run")
}

// A killed dowel leaves no processes behind.
func TestUpKilled(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	pidFile := filepath.Join(p.home, "pid")
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"child": {"command": "/bin/sh", "args": ["-c", "echo $$ > %s; exec %s serve everything"]}}}`, pidFile, testBinary(t)))
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"child": hub.Ready})
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
	polltest.Until(t, "the end of the server", func() bool { return syscall.Kill(pid, 0) != nil })
}

// The gateway does not open if its access settings have errors.
func TestUpWithoutItsToken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"gateway": {"token": "${NO_SUCH_VARIABLE}"}}`, `{"gateway": {"token": "x"`} {
		p := newTestUser(t)
		p.writeFile(p.userFile(), text)
		if out := p.runDowel("up", "--http", "0"); out.code != exit.Failed || !strings.Contains(out.stderr, "dowel.json:1:") || !strings.Contains(out.stderr, "who may use it") {
			t.Errorf("%s: %+v", text, out)
		}
	}
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"gateway": {"token": "configured-token"}}`)
	p.expectSuccess("Authorization: Bearer configured-token\n", "status", "--token")
	url := p.startDaemon()
	if code, _ := p.request(http.MethodPost, url+"/mcp", nil); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", code)
	}
	p.expectSuccess("everything__echo", "tools", "--url", url+"/mcp", "-H", "Authorization: Bearer configured-token")
	p.expectFailure(exit.Failed, "change gateway.token in", "status", "--token", "--renew")
}
