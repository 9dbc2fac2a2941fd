package interop

import (
	"bufio"
	"context"
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
)

// upLimit bounds the time until all servers are ready.
const upLimit = 60 * time.Second

// resident is a user with a home, a project and a running dowel.
type resident struct {
	cli
	project string
	env     []string
	up      *exec.Cmd
	reading sync.WaitGroup // reads the output of the running dowel
	stdout  strings.Builder
	stderr  strings.Builder
}

func newResident(t *testing.T) *resident {
	r := &resident{cli: newCLI(t), project: t.TempDir()}
	for name, folder := range map[string]string{
		"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state", "XDG_DATA_HOME": ".local/share",
		"XDG_CACHE_HOME": ".cache", "XDG_RUNTIME_DIR": "run",
	} {
		r.env = append(r.env, name+"="+filepath.Join(r.home, folder))
	}
	return r
}

func (r *resident) process(ctx context.Context, words ...string) *exec.Cmd {
	cmd := r.command(ctx, nil, words...)
	cmd.Dir, cmd.Env = r.project, append(cmd.Env, r.env...)
	return cmd
}

// runDowel runs another dowel process to its end and returns its stdout.
func (r *resident) runDowel(words ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := r.process(ctx, words...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("dowel %s: %v\nstdout: %s\nstderr: %s", strings.Join(words, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

func (r *resident) write(path, text string) {
	r.t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

var gatewayURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// startDowel starts dowel up, waits until all servers are ready, and returns the gateway's URL.
func (r *resident) startDowel(servers []string, words ...string) string {
	r.t.Helper()
	r.up = r.process(context.Background(), append([]string{"up", "--http", "0"}, words...)...)
	r.up.Stderr = &r.stderr
	out, err := r.up.StdoutPipe()
	if err == nil {
		err = r.up.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.up != nil { // the test has failed before stopDowel
			_ = r.up.Process.Kill()
			r.wait()
			r.t.Logf("dowel up said: %s\n%s", shorten(r.stdout.String()), shorten(r.stderr.String()))
		}
	})
	url := make(chan string, 1)
	r.reading.Go(func() {
		lines := bufio.NewScanner(io.TeeReader(out, &r.stdout))
		for lines.Scan() {
			if found := gatewayURL.FindString(lines.Text()); found != "" {
				select {
				case url <- found:
				default:
				}
			}
		}
	})
	select {
	case found := <-url:
		r.awaitReady(servers)
		return found
	case <-time.After(upLimit):
		r.t.Fatal("dowel up has not printed the URL of its gateway")
	}
	return ""
}

// awaitReady waits until exactly these servers are ready. Other servers may be disabled.
func (r *resident) awaitReady(servers []string) {
	r.t.Helper()
	var status struct {
		Servers []struct{ Name, Status, Problem, Cause string }
	}
	for end := time.Now().Add(upLimit); ; time.Sleep(200 * time.Millisecond) {
		if err := json.Unmarshal([]byte(r.runDowel("status", "--json")), &status); err != nil {
			r.t.Fatal(err)
		}
		var ready, wanted []string
		for _, s := range status.Servers {
			if s.Status != "disabled" {
				wanted = append(wanted, s.Name)
			}
			if s.Status == "ready" {
				ready = append(ready, s.Name)
			}
		}
		slices.Sort(ready)
		if len(wanted) == len(servers) && slices.Equal(ready, slices.Sorted(slices.Values(servers))) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("within %v not all of %v are ready: %+v", upLimit, servers, status.Servers)
		}
	}
}

func (r *resident) wait() {
	r.reading.Wait()
	_ = r.up.Wait() // ProcessState has the result
}

// stopDowel ends dowel with Ctrl-C and checks that all processes end. At least the given number
// must run before, dowel included.
func (r *resident) stopDowel(processes int) {
	r.t.Helper()
	if running := len(markedProcesses(r.t, r.mark)); running < processes {
		r.t.Errorf("%d processes run, want %d at least", running, processes)
	}
	if err := r.up.Process.Signal(syscall.SIGINT); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { r.wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(upLimit):
		_ = r.up.Process.Kill()
		<-ended
		r.t.Errorf("dowel up does not end within %v of Ctrl-C", upLimit)
	}
	if code := r.up.ProcessState.ExitCode(); code != 0 {
		r.t.Errorf("dowel up ended with %d\nstdout: %s\nstderr: %s", code, shorten(r.stdout.String()), shorten(r.stderr.String()))
	}
	r.up = nil
	expectNoneLeft(r.t, r.mark)
}

// The servers in the files that writeConfigs writes.
var (
	residentServers = []string{"everything", "weather", "kv", "reference", "files", "stream", "thinking", "memory", "old", "modern"}
	// reference has another process for each client.
	residentProcesses = 1 + len([]string{"everything", "weather", "kv", "reference", "files", "thinking", "memory"})
	otherTools        = []string{"vscode", "codex", "gemini", "goose"}
)

const ownComment = "// what I have written myself"

// writeConfigs writes dowel's own file and the files of five tools, and starts the servers over
// HTTP. It returns the paths of the files: dowel's own first, the project's second.
func (r *resident) writeConfigs() []string {
	t := r.t
	stream, old := startService(t, everythingService(t, "streamableHttp")), startService(t, everythingService(t, "sse"))
	modern := startService(t, typeScriptService(t))
	dowel, config := binaryPath(t, "dowel"), filepath.Join(r.home, ".config")
	file := func(path, format string, values ...any) string {
		r.write(path, fmt.Sprintf(format, values...))
		return path
	}
	return []string{
		file(filepath.Join(config, "dowel", "dowel.json"), `{
  %[1]s
  "mcpServers": {
    "everything": {"command": %[2]q, "args": ["serve", "everything"]},
    "weather": {"command": %[2]q, "args": ["serve", "weather"]}, // on the road
    "kv": {"command": %[2]q, "args": ["serve", "kv", "memory=true"]},
    "reference": {"command": %[3]q}, /* it asks while it works on a call */
  },
  "gateway": {"open": true}
}
`, ownComment, dowel, npmPath(t, "mcp-server-everything")),
		file(filepath.Join(r.project, ".mcp.json"),
			`{"mcpServers": {"files": {"type": "stdio", "command": %q, "args": ["${RESIDENT_FILES:-%s}"]}}}`,
			npmPath(t, "mcp-server-filesystem"), r.project),
		file(filepath.Join(config, "Code", "User", "mcp.json"), `{
  "inputs": [{"type": "promptString", "id": "port", "description": "Where it is", "default": %q}], // VS Code's
  "servers": {"stream": {"type": "http", "url": "http://127.0.0.1:${input:port}/mcp"}},
}`, stream.port),
		file(filepath.Join(r.home, ".codex", "config.toml"), `model = "any"

[mcp_servers.thinking]
command = %q
startup_timeout_sec = 30.5

[mcp_servers.thinking.env]
DISABLE_THOUGHT_LOGGING = "true"
`, npmPath(t, "mcp-server-sequential-thinking")),
		file(filepath.Join(r.home, ".gemini", "settings.json"), `{
  "theme": "any",
  "mcpServers": {
    "old": {"url": %q, "timeout": 600000},
    "modern": {"httpUrl": %q}
  }
}`, old.urlOf("/sse"), modern.urlOf("/mcp")),
		file(filepath.Join(config, "goose", "config.yaml"), `GOOSE_MODEL: any
extensions:
  developer: {type: builtin, enabled: false, name: developer}
  memory:
    type: stdio
    cmd: %q
    args: []
    envs: {MEMORY_FILE_PATH: %q}
    timeout: 300
    enabled: true
`, npmPath(t, "mcp-server-memory"), filepath.Join(r.home, "memory.json")),
	}
}
