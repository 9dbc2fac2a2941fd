//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// logIn runs dowel login and plays the user with a browser. It returns the output.
func (u *testUser) logIn(as *authtest.Server, words ...string) output {
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
	return output{stdout: stdout.String(), stderr: said.String()}
}

// A server of the running dowel that needs a login says so, works after dowel login, and needs one
// again after dowel logout, which revokes the tokens. No output and no file has a secret of the
// login.
func TestLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Quirks: []string{"registration-secret"}})
	resource := protectEverything(t, as)
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"gateway": {"audit": "`+filepath.Join(u.home, "audit.jsonl")+`", "auditArguments": true}, "mcpServers": {"notes": {
		"url": "`+resource.URL+`", "oauth": {"dpop": true, "scopes": ["openid", "use"]}}}}`)
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
	u.expectSuccess("Log in: dowel login notes", "status", "notes")
	u.expectSuccess("You are logged in nowhere", "auth", "status")
	if out := u.runDowel("doctor", "notes"); out.code == 0 || !strings.Contains(out.stdout, "Log in: dowel login notes") || !strings.Contains(out.stdout, "/.well-known/oauth-protected-resource") {
		t.Errorf("%+v", out)
	}
	login := u.logIn(as, "notes")
	all := login.stdout
	if !strings.Contains(all, `"restarted":true`) {
		t.Errorf("login wrote %s", all)
	}
	u.awaitStates(map[string]hub.Status{"notes": hub.Ready})
	u.expectSuccess("you are logged in; the key of your logins is in a file beside them", "doctor", "notes")
	all += u.expectSuccess(resource.URL+": logged in at "+as.Issuer+", scopes openid use", "auth", "status")
	as.Advance(2 * time.Hour) // the next command refreshes the token
	for _, words := range []string{
		"tools notes --wire -v", "tools --url " + resource.URL + " --wire -v", "call notes.echo message=hi --wire", "auth status --json", "status --json",
		"doctor notes --json -v", "wire --past --json",
	} {
		out := u.runDowel(strings.Fields(words)...)
		if out.code != 0 {
			t.Errorf("%s: %+v", words, out)
		}
		all += out.stdout + out.stderr
	}
	secrets := u.storedProofKeys(resource.URL)
	all += u.expectSuccess("You are logged out at notes. The running dowel restarts the server", "logout", "notes")
	if n := as.Count("revoke"); n != 2 {
		t.Errorf("%d tokens were revoked, want 2", n)
	}
	u.awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
	all += u.output()
	maps.Copy(secrets, secretsOf(t, as, resource))
	for name, secret := range secrets {
		if strings.Contains(all, secret) {
			t.Errorf("the %s was shown", name)
		}
		if strings.Contains(login.stderr, secret) && !strings.HasPrefix(name, "state ") { // in the URL of the login
			t.Errorf("the %s was shown by the login", name)
		}
	}
	err := filepath.WalkDir(u.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for name, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has the %s", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// secretsOf returns the secrets of the logins at an authorization server, by names. Each kind must
// be among them.
func secretsOf(t *testing.T, as *authtest.Server, resource *authtest.Resource) map[string]string {
	t.Helper()
	secrets := map[string]string{}
	add := func(kind, value string) {
		if value != "" {
			secrets[fmt.Sprint(kind, " ", len(secrets))] = value
		}
	}
	for _, header := range resource.Headers() {
		_, token, _ := strings.Cut(header.Get("Authorization"), " ")
		add("access token", token)
		add("proof", header.Get("DPoP"))
	}
	for endpoint, fields := range map[string][]string{
		"authorize": {"state"}, "authorization_code": {"code", "code_verifier"}, "refresh_token": {"refresh_token"}, "revoke": {"token"},
	} {
		for _, r := range as.Requests(endpoint) {
			for _, field := range fields {
				add(field, r.Form.Get(field))
			}
			client, _ := as.Client(r.Form.Get("client_id"))
			add("client secret", client.Secret)
			if endpoint == "authorization_code" {
				add("ID token", startOfIDToken(client.ID))
			}
			add("proof", r.Header.Get("DPoP"))
		}
	}
	for _, kind := range []string{"access token", "state", "code ", "code_verifier", "refresh_token", "token ", "client secret", "ID token", "proof"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(secrets)), func(name string) bool { return strings.HasPrefix(name, kind) }) {
			t.Errorf("no %s is among the secrets", kind)
		}
	}
	return secrets
}

// dowel login --device logs in by a code that the user enters elsewhere, and shows no other secret
// of the flow. Without such a flow at the server, it says so.
func TestLoginByCode(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Quirks: []string{"registration-managed", "no-documents"}})
	resource := protectEverything(t, as)
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
	cmd := u.newCommand("login", "notes", "--device", "--json", "-v")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		var line struct{ Login struct{ Code, URL string } }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Login.Code == "" {
			continue
		}
		resp, err := http.PostForm(line.Login.URL, url.Values{"user_code": {line.Login.Code}})
		if err != nil {
			t.Error(err)
			continue
		}
		resp.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("dowel login: %v\n%s", err, said.String())
	}
	all := said.String() + stdout.String()
	for _, words := range []string{"auth status --json", "doctor notes --json -v", "call notes.echo message=hi --wire -v", "logout notes --json -v"} {
		out := u.runDowel(strings.Fields(words)...)
		if out.code != exit.OK {
			t.Errorf("%s: %+v", words, out)
		}
		all += out.stdout + out.stderr
	}
	if as.Count("authorize") != 0 || as.Count("device") != 1 {
		t.Errorf("the browser was used %d times, a code %d times", as.Count("authorize"), as.Count("device"))
	}
	if found := secretOfAuthtest.FindString(all); found != "" {
		t.Errorf("%s… was shown", found[:10])
	}

	none := authtest.Start(t, &authtest.Options{Quirks: []string{"no-device"}})
	u.expectFailure(exit.Connection, "offers no login by a code: leave out --device", "login", "--device", "--url", protectEverything(t, none).URL)
}

// secretOfAuthtest matches secrets that an authorization server of package authtest has made.
var secretOfAuthtest = regexp.MustCompile(`\b(management|device|refresh|access|secret|code)-[A-Za-z0-9_-]{20,}`)

// dowel doctor names the rule that the metadata of a server breaks, and the setting that would
// help.
func TestDoctorNamesSetting(t *testing.T) {
	t.Parallel()
	for quirk, tt := range map[string]struct{ rule, setting string }{
		"resource-elsewhere":   {"RFC 9728, section 3.3", "set oauth.resource in its entry"},
		"issuer-other":         {"RFC 8414, section 3.3", "set oauth.metadataUrl in the server's entry"},
		"no-registration":      {"registers no clients by itself", "set oauth.clientId in the server's entry"},
		"no-challenge-methods": {"code_challenge_methods_supported", `set "assumePKCE": true in oauth`},
	} {
		as := authtest.Start(t, &authtest.Options{Quirks: []string{quirk, "no-device"}})
		resource := protectEverything(t, as)
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
		out := u.runDowel("doctor", "notes")
		for _, want := range []string{tt.rule, tt.setting, "/.well-known/oauth-protected-resource"} {
			if out.code == 0 || !strings.Contains(out.stdout, want) {
				t.Errorf("%s: %+v, want %q", quirk, out, want)
			}
		}
		if n := as.Count("authorize") + as.Count("register"); n != 0 {
			t.Errorf("%s: %d registrations and logins, want none", quirk, n)
		}
	}
}

// A client that the user registers needs the redirect URI of the entry.
func TestDoctorNamesRedirect(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Quirks: []string{"no-registration", "no-device"}})
	resource := protectEverything(t, as)
	for oauth, want := range map[string]string{
		`{}`:                       "http://127.0.0.1:13316/callback",
		`{"callbackPort": "9999"}`: "http://localhost:9999/callback",
		`{"redirectUri": "http://127.0.0.1:7777/back"}`: "http://127.0.0.1:7777/back",
	} {
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"mcpServers": {"notes": {"url": "`+resource.URL+`", "oauth": `+oauth+`}}}`)
		if out := u.runDowel("doctor", "notes"); !strings.Contains(out.stdout, want) {
			t.Errorf("%s: %s, want %s", oauth, out.stdout, want)
		}
	}
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
