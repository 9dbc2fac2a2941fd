//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// protectEverything returns the server everything behind an authorization server.
func protectEverything(t *testing.T, as *authtest.Server) *authtest.Resource {
	t.Helper()
	handler := streamable.Handler(everything.New(), nil)
	resource := as.Protect(t, handler, "use")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = handler.Shutdown(ctx)
	})
	return resource
}

// logIn runs dowel login and plays the user with a browser. It returns the stdout.
func (u *testUser) logIn(as *authtest.Server, words ...string) string {
	u.t.Helper()
	cmd := u.newCommand(append([]string{"login", "--no-browser", "--json"}, words...)...)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		var line struct{ Login struct{ URL string } }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Login.URL == "" {
			continue
		}
		to, err := as.Approve(u.t.Context(), line.Login.URL)
		if err != nil {
			u.t.Error(err)
			continue
		}
		resp, err := http.Get(to.String())
		if err != nil {
			u.t.Error(err)
			continue
		}
		resp.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		u.t.Fatalf("dowel login: %v\n%s", err, said.String())
	}
	return stdout.String()
}

// A server of the running dowel that needs a login says so, works after dowel login, and needs one
// again after dowel logout, which revokes the tokens. No output has a token.
func TestLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	resource := protectEverything(t, as)
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
	u.expectSuccess("Log in: dowel login notes", "status", "notes")
	u.expectSuccess("You are logged in nowhere", "auth", "status")
	if out := u.runDowel("doctor", "notes"); out.code == 0 || !strings.Contains(out.stdout, "Log in: dowel login notes") || !strings.Contains(out.stdout, "/.well-known/oauth-protected-resource") {
		t.Errorf("%+v", out)
	}
	if got := u.logIn(as, "notes"); !strings.Contains(got, `"restarted":true`) {
		t.Errorf("login wrote %s", got)
	}
	u.awaitStates(map[string]hub.Status{"notes": hub.Ready})
	all := u.expectSuccess(resource.URL+": logged in at "+as.Issuer+", scopes use", "auth", "status")
	for _, words := range []string{"auth status --json", "status --json", "doctor notes --json -v", "tools notes --wire -v", "tools --url " + resource.URL + " --wire -v"} {
		out := u.runDowel(strings.Fields(words)...)
		if out.code != 0 {
			t.Errorf("%s: %+v", words, out)
		}
		all += out.stdout + out.stderr
	}
	all += u.output()
	tokens := 0
	for _, header := range resource.Headers() {
		if _, token, ok := strings.Cut(header.Get("Authorization"), " "); ok {
			tokens++
			if strings.Contains(all, token) {
				t.Fatal("an access token was shown")
			}
		}
	}
	if tokens == 0 {
		t.Error("no request had a token")
	}
	u.expectSuccess("You are logged out at notes. The running dowel restarts the server", "logout", "notes")
	if n := as.Count("revoke"); n != 2 {
		t.Errorf("%d tokens were revoked, want 2", n)
	}
	u.awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
}

// Three processes with one expired token refresh it once.
func TestOneRefreshOfThreeProcesses(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	resource := protectEverything(t, as)
	u := newTestUser(t)
	u.logIn(as, "--url", resource.URL)
	as.Advance(2 * time.Hour)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { u.expectSuccess("echo", "tools", "--url", resource.URL) })
	}
	all.Wait()
	if n := as.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

func TestLoginUsage(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"mcpServers": {
		"local": {"command": "/bin/false"},
		"fixed": {"url": "https://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer x"}},
		"away": {"url": "http://127.0.0.1:1/mcp"}}}`)
	for words, says := range map[string]string{
		"login":                         "name one server: dowel login SERVER",
		"login x --url http://x/":       "not both",
		"login awa":                     "no server of your configuration is called awa",
		"login local":                   "it is started by a command",
		"login fixed":                   "its entry has the header Authorization, at ",
		"logout fixed":                  "its entry has the header Authorization, at ",
		"login --url nonsense":          "write a URL such as https://",
		"auth key":                      "want file or keyring",
		"auth client-document http://x": "want an https URL",
	} {
		u.expectFailure(exit.Usage, says, strings.Fields(words)...)
	}
	u.expectFailure(exit.Connection, "the login failed", "login", "away", "--no-browser")
	u.expectSuccess("in a file beside them", "auth", "key", "--move", "file")
	u.expectSuccess(`"client_id": "https://example.com/dowel.json"`, "auth", "client-document", "https://example.com/dowel.json")
}

// dowel run names the command that logs in at a server whose tools are missing.
func TestRunNamesLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	resource := protectEverything(t, as)
	u := newTestUser(t)
	m := startModel(t, `{"turns": [{"text": "Fine."}]}`)
	u.writeFile(u.userFile(), `{
		"mcpServers": {"notes": {"url": "`+resource.URL+`"}, "mine": `+u.builtInEntry("everything", "")+`},
		"models": {"scripted": {"provider": "openai", "model": "gpt-test", "url": "`+m.url+`"}}, "model": "scripted"}`)
	out := u.runDowel("run", "Go.")
	if want := "the tools of notes are missing, since it needs a login. Log in: dowel login notes"; out.code != exit.OK || !strings.Contains(out.stderr, want) {
		t.Errorf("%+v, want %q", out, want)
	}
}
