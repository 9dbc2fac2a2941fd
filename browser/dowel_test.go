//go:build linux

package browser

import (
	"bufio"
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
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// user is a user with a home, a project and a running dowel.
type user struct {
	t             *testing.T
	home, project string
	cmd           *exec.Cmd
	url           string // of the gateway, without a path

	mu      sync.Mutex
	printed strings.Builder
}

func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir(), project: t.TempDir()}
	t.Cleanup(u.stop)
	return u
}

// command returns dowel with the user's home and project.
func (u *user) command(words ...string) *exec.Cmd {
	cmd := exec.Command(dowelPath, words...)
	cmd.Dir = u.project
	cmd.Env = []string{"PATH=" + filepath.Dir(dowelPath) + ":" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8", "DOWEL_CONSOLE_DIR=" + os.Getenv("DOWEL_CONSOLE_DIR")}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+u.home)
	}
	return cmd
}

// run runs dowel to its end and returns its output. Its failure fails the test unless mayFail.
func (u *user) run(mayFail bool, words ...string) string {
	u.t.Helper()
	cmd := u.command(words...)
	timer := time.AfterFunc(polltest.Limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	output, err := cmd.CombinedOutput()
	if err != nil && !mayFail {
		u.t.Fatalf("dowel %s: %v\n%s", strings.Join(words, " "), err, output)
	}
	return string(output)
}

func (u *user) write(path, text string) {
	u.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// entry returns the entry of a server that this test binary plays.
func entry(t *testing.T, role string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"command": %q, "env": {%q: %q}}`, self, roleVariable, role)
}

// configure writes a configuration with servers in many states.
func (u *user) configure() {
	u.t.Helper()
	servers := map[string]json.RawMessage{
		"everything": json.RawMessage(`"everything"`), "github": json.RawMessage(entry(u.t, "github")), "jira": json.RawMessage(entry(u.t, "fails")), "tracker": json.RawMessage(entry(u.t, "shapes")),
		"kv": json.RawMessage(`"kv"`), "search": json.RawMessage(`{"url": "https://search.example/mcp", "headers": {"Authorization": "Bearer ${SEARCH_TOKEN}"}}`),
		"a-server-with-a-rather-long-name-of-a-team": json.RawMessage(`{"command": "missing-program-of-the-team", "args": ["--port", "1"]}`),
	}
	u.configureServers(servers)
	u.write(filepath.Join(u.project, ".mcp.json"), `{"mcpServers": {"team-db": {"command": "npx", "args": ["-y", "@acme/db-mcp", "--url", "postgres://team@db/prod"], "env": {"NODE_OPTIONS": "--require ./hook.js"}}}}`)
	u.run(false, "servers", "disable", "kv")
}

func (u *user) configureServers(servers map[string]json.RawMessage) {
	u.t.Helper()
	for name, raw := range servers {
		if raw[0] == '"' { // a built-in server
			servers[name] = json.RawMessage(fmt.Sprintf(`{"command": %q, "args": ["serve", %s]}`, dowelPath, raw))
		}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		u.t.Fatal(err)
	}
	u.write(filepath.Join(u.home, "dowel", "dowel.json"), string(text))
}

var gatewayURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start starts dowel up.
func (u *user) start(words ...string) {
	u.t.Helper()
	u.cmd = u.command(append([]string{"up", "--http", "0"}, words...)...)
	out, err := u.cmd.StdoutPipe()
	if err == nil {
		err = u.cmd.Start()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			u.mu.Lock()
			u.printed.WriteString(lines.Text() + "\n")
			u.mu.Unlock()
			if url := gatewayURL.FindString(lines.Text()); url != "" && len(found) == 0 {
				found <- url
			}
		}
	}()
	select {
	case u.url = <-found:
	case <-time.After(polltest.Limit):
		u.t.Fatal("dowel up does not say where it is")
	}
}

// stop ends the running dowel.
func (u *user) stop() {
	if u.cmd == nil {
		return
	}
	_ = u.cmd.Process.Signal(syscall.SIGINT)
	_ = u.cmd.Wait() // its exit code is another test's
	u.cmd = nil
}

// loginURL returns a link that opens the console.
func (u *user) loginURL() string {
	u.t.Helper()
	return strings.TrimSpace(u.run(false, "console", "--print"))
}

// token returns the value of the Authorization field for the gateway.
func (u *user) token() string {
	u.t.Helper()
	_, value, _ := strings.Cut(strings.TrimSpace(u.run(false, "status", "--token")), ": ")
	return value
}

// dial connects a client to the gateway over HTTP. It is closed with the test.
func (u *user) dial(options *client.Options) *client.Client {
	u.t.Helper()
	token := u.token()
	options.HTTP.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {token}}, nil
	}
	c, err := client.Dial(u.t.Context(), u.url+"/mcp", options)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { c.Close() })
	return c
}

// openConsole opens the console in a wide, light window and logs in.
func (u *user) openConsole() *tab {
	u.t.Helper()
	p := newTab(u.t, u.url)
	p.show(looks[0])
	p.login(u)
	return p
}

// login opens the console and waits until the page has its token.
func (p *tab) login(u *user) {
	p.t.Helper()
	p.do(chromedp.Navigate(u.loginURL()))
	p.until(`!!localStorage.getItem("dowel.token")`)
}
