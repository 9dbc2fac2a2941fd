//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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
)

// person is somebody with a home and a project of their own, and perhaps a dowel that runs.
type person struct {
	t             *testing.T
	home, project string

	cmd  *exec.Cmd
	mu   sync.Mutex
	said strings.Builder // by the dowel that runs, on stdout and stderr
}

// homes are the variables that say where what is a person's own lies.
var homes = []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{t: t, home: t.TempDir(), project: t.TempDir()}
	t.Cleanup(p.down)
	return p
}

// process is a run of dowel as the person, in the project.
func (p *person) process(words ...string) *exec.Cmd {
	cmd := process(p.t, words...)
	cmd.Dir = p.project
	cmd.Env = os.Environ()
	for _, name := range homes {
		cmd.Env = append(cmd.Env, name+"="+p.home)
	}
	return cmd
}

// run runs dowel to its end.
func (p *person) run(words ...string) output {
	p.t.Helper()
	cmd := p.process(words...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the state says more
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// ok runs dowel and returns what it wrote, which must hold a text.
func (p *person) ok(want string, words ...string) string {
	p.t.Helper()
	out := p.run(words...)
	if out.code != 0 || !strings.Contains(out.stdout, want) {
		p.t.Errorf("dowel %s: exit code %d, want 0 and %q\n%s%s", strings.Join(words, " "), out.code, want, out.stdout, out.stderr)
	}
	return out.stdout
}

// up starts dowel up and waits until it says where it is.
func (p *person) up(words ...string) (url string) {
	p.t.Helper()
	one := p.process() // its context ends with the test, before what is cleaned up
	p.cmd = &exec.Cmd{Path: one.Path, Args: append([]string{"dowel", "up", "--http", "0"}, words...), Dir: one.Dir, Env: one.Env}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.cmd.Stderr = writer(p.note)
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.note(lines.Text() + "\n")
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
	case <-time.After(20 * time.Second):
		p.t.Fatal("dowel up does not say where it is:\n" + p.all())
	}
	return url
}

type writer func(string)

func (w writer) Write(text []byte) (int, error) { w(string(text)); return len(text), nil }

var _ io.Writer = writer(nil)

func (p *person) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.WriteString(text)
}

func (p *person) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// down ends the dowel that runs with Ctrl-C.
func (p *person) down() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	_ = p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("dowel up ended with %d:\n%s", code, p.all())
	}
	p.cmd = nil
}

func (p *person) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// own is the person's own file, and shared that of the project.
func (p *person) own() string    { return filepath.Join(p.home, "dowel", "dowel.json") }
func (p *person) shared() string { return filepath.Join(p.project, "dowel.json") }

// status returns how the servers are.
func (p *person) status() map[string]control.Server {
	p.t.Helper()
	var s control.Status
	if out := p.run("status", "--json"); json.Unmarshal([]byte(out.stdout), &s) != nil {
		p.t.Fatalf("status: %s%s\n%s", out.stdout, out.stderr, p.all())
	}
	servers := map[string]control.Server{}
	for _, server := range s.Servers {
		servers[server.Name] = server
	}
	return servers
}

// until waits for the servers to be so.
func (p *person) until(want map[string]hub.Status) map[string]control.Server {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		now := p.status()
		same := len(now) == len(want)
		for name, status := range want {
			same = same && now[name].Status == status
		}
		if same {
			return now
		}
		if time.Now().After(end) {
			p.t.Fatalf("the servers are %+v, want %v\n%s", now, want, p.all())
		}
	}
}

// served is an entry for a server that is built into dowel.
func (p *person) served(name string, more string) string {
	return fmt.Sprintf(`{"command": %q, "args": ["serve", %q]%s}`, self(p.t), name, more)
}

// On a machine without configuration there are the built-in servers.
func TestUpWithNothing(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	url := p.up()
	p.until(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	p.ok("hi\n", "call", "everything__echo", "message=hi", "--url", url+"/mcp")
	p.ok("hi\n", "call", "everything__echo", "message=hi", "--url", url+"/sse")
	p.ok("hi\n", "call", "echo", "message=hi", "--url", url+"/mcp/everything", "--revision", "2025-06-18")
	p.ok("hi\n", "call", "everything.echo", "message=hi")
	p.ok("kv__", "tools")
	if second := p.run("up", "--http", "0"); second.code == 0 || !strings.Contains(second.stderr, "running already") {
		t.Errorf("a second dowel: %d, %s", second.code, second.stderr)
	}
	p.down()
	if out := p.run("status"); out.code != exit.Connection || !strings.Contains(out.stderr, "dowel up") {
		t.Errorf("%d, %s", out.code, out.stderr)
	}
}

func TestUpWithFiles(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{
		// mine
		"mcpServers": {
			"mine": `+p.served("everything", `, "env": {"SECRET_TOKEN": "not-to-be-seen"}`)+`,
			"broken": {"comand": "npx"},
			"unset": {"command": "npx", "env": {"TOKEN": "${NO_SUCH_VARIABLE}"}},
			"absent": {"command": "no-such-program-anywhere"}
		},
	}`)
	p.write(p.shared(), `{"mcpServers": {"theirs": `+p.served("kv", "")+`}}`)
	p.up()
	servers := p.until(map[string]hub.Status{
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
	p.ok("hi\n", "call", "mine.echo", "message=hi")
	if out := p.run("call", "theirs.get", "key=x"); out.code == 0 || !strings.Contains(out.stdout+out.stderr, "trust") {
		t.Errorf("an untrusted server is called: %+v", out)
	}
	p.ok("env.SECRET_TOKEN", "config", "explain", "mine")
	if out := p.run("config", "explain", "mine"); strings.Contains(out.stdout, "not-to-be-seen") {
		t.Error("a secret is shown")
	}
	if out := p.run("config", "check"); out.code != exit.Failed || !strings.Contains(out.stdout, "dowel.json:5:") {
		t.Errorf("%+v", out)
	}
	p.ok("allowed", "trust", "theirs", "--yes")
	p.until(map[string]hub.Status{
		"mine": hub.Ready, "broken": hub.NeedsConfiguration, "unset": hub.NeedsConfiguration, "absent": hub.Failed, "theirs": hub.Ready,
	})
}

// What is changed in a file is taken up at once, and nothing else is restarted.
func TestUpFollows(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"same": `+p.served("everything", "")+`, "gone": `+p.served("weather", "")+`}}`)
	p.up()
	since := p.until(map[string]hub.Status{"same": hub.Ready, "gone": hub.Ready})["same"].Since
	p.write(p.own(), `{"mcpServers": {"same": `)
	for end := time.Now().Add(10 * time.Second); !strings.Contains(p.run("status").stderr, "what ran before goes on"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the status does not say that the file is broken")
		}
	}
	p.until(map[string]hub.Status{"same": hub.Ready, "gone": hub.Ready})
	p.write(p.own(), `{"mcpServers": {"same": `+p.served("everything", "")+`, "new": `+p.served("weather", "")+`}}`)
	p.until(map[string]hub.Status{"same": hub.Ready, "new": hub.Ready})
	p.ok("Written", "servers", "add", "added", "--", self(t), "serve", "everything")
	p.until(map[string]hub.Status{"same": hub.Ready, "new": hub.Ready, "added": hub.Ready})
	p.ok("", "servers", "disable", "new")
	p.until(map[string]hub.Status{"same": hub.Ready, "new": hub.Disabled, "added": hub.Ready})
	p.ok("", "servers", "enable", "new")
	p.ok("Written", "servers", "remove", "added")
	now := p.until(map[string]hub.Status{"same": hub.Ready, "new": hub.Ready})
	if now["same"].Since != since {
		t.Error("a server was restarted that has not changed")
	}
	p.ok("", "servers", "restart", "same")
	if !strings.Contains(p.all(), "dowel.json") {
		t.Error("it does not say what is wrong with the file that was broken:\n" + p.all())
	}
}

// A client that starts dowel up --stdio gets the servers of the dowel that runs, else those of the configuration.
func TestUpStdio(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"one": `+p.served("everything", "")+`}}`)
	tools := func() string { return p.ok("one__echo", "tools", "--", self(t), "up", "--stdio") }
	tools()
	p.up()
	p.until(map[string]hub.Status{"one": hub.Ready})
	tools()
	p.ok(`"listChanged":true`, "discover", "--json", "--revision", "2025-06-18", "--", self(t), "up", "--stdio")
}

func TestToolSearch(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	url := p.up("--tool-search")
	p.until(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	var list struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(p.ok("", "tools", "--json", "--url", url+"/mcp")), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"search_tools", "describe_tool", "call_tool", "dowel__status"}) {
		t.Errorf("%v", names)
	}
	p.ok("weather__get_alerts", "call", "search_tools", "query=storm warnings in a state", "--url", url+"/mcp")
	p.ok(`"inputSchema"`, "call", "describe_tool", "name=everything__echo", "--url", url+"/mcp")
	p.ok("hi\n", "call", "call_tool", "name=everything__echo", `arguments={"message":"hi"}`, "--url", url+"/mcp")
	if out := p.run("call", "call_tool", "name=everything__ecco", "--url", url+"/mcp"); out.code != exit.Failed || !strings.Contains(out.stderr, "everything__echo") {
		t.Errorf("%+v", out)
	}
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	cursor := filepath.Join(p.home, ".cursor", "mcp.json")
	p.write(cursor, `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"T": "${env:T}"}}}}`)
	if out := p.ok("+ a", "import", "--dry-run"); !strings.Contains(out, "${env:T}") {
		t.Error(out)
	}
	p.write(filepath.Join(p.home, "Code", "User", "mcp.json"),
		`{"inputs": [{"type": "promptString", "id": "port", "default": "8080"}], "servers": {"v": {"type": "http", "url": "http://127.0.0.1:${input:port}/mcp"}}}`)
	p.ok("Written", "import", "--from", "cursor,vscode", "--yes")
	p.ok("url = http://127.0.0.1:8080/mcp", "config", "explain", "v")
	p.ok("nothing to add", "import", "--yes")
	p.ok("+ ", "export", "--to", "cursor", "--dry-run")
	p.ok("mcp.json.bak", "export", "--to", "cursor")
	text, err := os.ReadFile(cursor)
	if err != nil || !strings.Contains(string(text), `"--stdio"`) || !strings.Contains(string(text), `"${env:T}"`) {
		t.Errorf("%s, %v", text, err)
	}
	p.ok("it is dowel itself", "import", "--dry-run")
}

// No process is left behind by a dowel that is killed.
func TestUpKilled(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	pidFile := filepath.Join(p.home, "pid")
	p.write(p.own(), fmt.Sprintf(`{"mcpServers": {"child": {"command": "/bin/sh", "args": ["-c", "echo $$ > %s; exec %s serve everything"]}}}`, pidFile, self(t)))
	p.up()
	p.until(map[string]hub.Status{"child": hub.Ready})
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
	for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server outlives the dowel that was killed")
		}
	}
}

// A gateway is not opened while it is not clear who may use it.
func TestUpWithoutItsToken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"gateway": {"token": "${NO_SUCH_VARIABLE}"}}`, `{"gateway": {"token": "x"`} {
		p := newPerson(t)
		p.write(p.own(), text)
		if out := p.run("up", "--http", "0"); out.code != exit.Failed || !strings.Contains(out.stderr, "dowel.json:1:") || !strings.Contains(out.stderr, "who may use it") {
			t.Errorf("%s: %+v", text, out)
		}
	}
	p := newPerson(t)
	p.write(p.own(), `{"gateway": {"token": "configured-token"}}`)
	p.ok("configured-token\n", "status", "--token")
	url := p.up()
	if out := p.run("tools", "--url", url+"/mcp"); out.code != exit.Connection {
		t.Errorf("%+v", out)
	}
	p.ok("everything__echo", "tools", "--url", url+"/mcp", "-H", "Authorization: Bearer configured-token")
}
