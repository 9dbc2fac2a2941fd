//go:build linux

package attack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// A victim is a user with a home and a project, and perhaps a running dowel.
type victim struct {
	t             *testing.T
	home, project string
	env           []string // added to the environment of dowel

	cmd     *exec.Cmd
	url     string // of the gateway, without a path
	token   string
	mu      sync.Mutex
	printed strings.Builder
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, home: t.TempDir(), project: t.TempDir()}
	t.Cleanup(v.stop)
	return v
}

// command returns dowel with the victim's home and project.
func (v *victim) command(words ...string) *exec.Cmd {
	cmd := exec.Command(dowelPath, words...)
	cmd.Dir = v.project
	cmd.Env = append([]string{"PATH=" + filepath.Dir(dowelPath) + ":" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8"}, v.env...)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+v.home)
	}
	return cmd
}

// run runs dowel to its end and returns its exit code and all output.
func (v *victim) run(words ...string) (int, string) {
	v.t.Helper()
	cmd := v.command(words...)
	timer := time.AfterFunc(polltest.Limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		v.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(output)
}

// succeed runs dowel, which must print want and end with 0.
func (v *victim) succeed(want string, words ...string) string {
	v.t.Helper()
	code, output := v.run(words...)
	if code != 0 || !strings.Contains(output, want) {
		v.t.Errorf("dowel %s: exit code %d, want 0 and %q:\n%s", strings.Join(words, " "), code, want, output)
	}
	return output
}

// fail runs dowel, which must print want and not end with 0.
func (v *victim) fail(want string, words ...string) {
	v.t.Helper()
	if code, output := v.run(words...); code == 0 || !strings.Contains(output, want) {
		v.t.Errorf("dowel %s: exit code %d, want a failure and %q:\n%s", strings.Join(words, " "), code, want, output)
	}
}

func (v *victim) write(path, text string) {
	v.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// userFile is the victim's own configuration, projectFile the project's.
func (v *victim) userFile() string    { return filepath.Join(v.home, "dowel", "dowel.json") }
func (v *victim) projectFile() string { return filepath.Join(v.project, "dowel.json") }

// builtIn returns the entry of a built-in server.
func builtIn(name string, words ...string) string {
	args, _ := json.Marshal(append([]string{"serve", name}, words...))
	return fmt.Sprintf(`{"command": %q, "args": %s}`, dowelPath, args)
}

// hostile returns the entry of a server that this test binary plays.
func hostile(t *testing.T, role string, words ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(append([]string{}, words...))
	return fmt.Sprintf(`{"command": %q, "args": %s, "env": {%q: %q}}`, self, args, roleVariable, role)
}

var gatewayURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start starts dowel up and reads its token.
func (v *victim) start(words ...string) {
	v.t.Helper()
	v.cmd = v.command(append([]string{"up", "--http", "0"}, words...)...)
	out, err := v.cmd.StdoutPipe()
	if err == nil {
		v.cmd.Stderr = writerFunc(v.recordOutput)
		err = v.cmd.Start()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			v.recordOutput(lines.Text() + "\n")
			if url := gatewayURL.FindString(lines.Text()); url != "" && len(found) == 0 {
				found <- url
			}
		}
	}()
	select {
	case v.url = <-found:
	case <-time.After(polltest.Limit):
		v.t.Fatal("dowel up does not say where it is:\n" + v.output())
	}
	_, header, _ := strings.Cut(v.succeed("Authorization: Bearer ", "status", "--token"), "Authorization: Bearer ")
	v.token, _, _ = strings.Cut(header, "\n") // a warning may follow
}

type writerFunc func(string)

func (w writerFunc) Write(text []byte) (int, error) { w(string(text)); return len(text), nil }

func (v *victim) recordOutput(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.printed.WriteString(text)
}

func (v *victim) output() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.printed.String()
}

// stop ends the running dowel with Ctrl-C. It must end well.
func (v *victim) stop() {
	if v.cmd == nil {
		return
	}
	_ = v.cmd.Process.Signal(syscall.SIGINT)
	timer := time.AfterFunc(polltest.Limit, func() { _ = v.cmd.Process.Kill() })
	_ = v.cmd.Wait() // ProcessState has the result
	timer.Stop()
	if code := v.cmd.ProcessState.ExitCode(); code != 0 {
		v.t.Errorf("dowel up ended with %d:\n%.4000s", code, v.output())
	}
	v.cmd = nil
}

// address returns host and port of the gateway.
func (v *victim) address() string { return strings.TrimPrefix(v.url, "http://") }

func (v *victim) bearer() string { return "Bearer " + v.token }

// client returns a client of the gateway. target is a path or a URL; revision may be empty.
func (v *victim) client(path string, revision mcp.Revision) *client.Client {
	v.t.Helper()
	url := v.url + path
	if strings.HasSuffix(path, "/ws") {
		url = "ws" + strings.TrimPrefix(url, "http")
	}
	ctx, cancel := context.WithTimeout(v.t.Context(), polltest.Limit)
	defer cancel()
	transport := &http.Transport{}
	c, err := client.Dial(ctx, url, &client.Options{
		Wire: client.Wire{Revision: revision}, Logger: slog.New(slog.DiscardHandler),
		HTTP: client.HTTP{Client: &http.Client{Transport: transport}, Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {v.bearer()}}, nil
		}},
	})
	if err != nil {
		v.t.Fatalf("%s: %v", url, err)
	}
	v.t.Cleanup(func() { c.Close(); transport.CloseIdleConnections() })
	return c
}

// checkServes fails the test unless the gateway answers a call.
func (v *victim) checkServes() {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), polltest.Limit)
	defer cancel()
	c := v.client("/mcp", "")
	defer c.Close()
	if got, err := client.Call[string](ctx, c, "every__echo", map[string]string{"message": "still here"}); err != nil || got != "still here" {
		v.t.Errorf("after the attack a call is answered with %q, %v\n%.4000s", got, err, v.output())
	}
}

// exchange sends an HTTP request over a connection of its own and returns the answer.
func (v *victim) exchange(method, path, body string, fields ...string) (int, string, http.Header) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), polltest.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		v.t.Fatal(method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(method, path, err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// send writes raw bytes to the gateway's port and returns all answers. Without an answer for a
// while it ends its half of the connection; earlier, the gateway would take the client to be gone.
func (v *victim) send(text string) string {
	v.t.Helper()
	conn, err := net.Dial("tcp", v.address())
	if err != nil {
		v.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(polltest.Limit))
	go func() { _, _ = io.WriteString(conn, text) }() // the gateway may answer before it has read everything
	impatience := time.AfterFunc(3*time.Second, func() { _ = conn.(*net.TCPConn).CloseWrite() })
	defer impatience.Stop()
	in := bufio.NewReader(conn)
	var answer bytes.Buffer
	const more = 300 * time.Millisecond // for further answers on the same connection
	for wait := polltest.Limit; ; wait = more {
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		n, err := io.CopyN(&answer, in, 1)
		if n > 0 {
			impatience.Stop()
		}
		if err != nil {
			break
		}
	}
	if answer.Len() == 0 {
		v.t.Errorf("no answer to %.200q", text)
	}
	return answer.String()
}

// modernMeta is the _meta member of a request of the modern era.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"attacker","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// echoBody is a call of the tool echo.
const echoBody = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"every__echo","arguments":{"message":"xyzzy"},` + modernMeta + `}}`

// echoFields are the header fields for echoBody.
func (v *victim) echoFields(more ...string) []string {
	return append([]string{"Authorization", v.bearer(), "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "every__echo"}, more...)
}

// head returns the head of a raw request with the fields of echoBody. A field replaces the echoBody
// field with the same name.
func (v *victim) head(line string, more ...string) string {
	fields := append([]string{"Host", v.address()}, v.echoFields()...)
	text := line + "\r\n"
	for i := 0; i < len(fields); i += 2 {
		replaced := false
		for _, field := range more {
			name, _, _ := strings.Cut(field, ":")
			replaced = replaced || strings.EqualFold(strings.TrimSpace(name), fields[i])
		}
		if !replaced {
			text += fields[i] + ": " + fields[i+1] + "\r\n"
		}
	}
	for _, field := range more {
		if field != "" {
			text += field + "\r\n"
		}
	}
	return text + "\r\n"
}

func length(text string) string { return fmt.Sprintf("Content-Length: %d", len(text)) }
