//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// newBrowser returns a browser without cookies. maxRedirects bounds the redirects that it follows.
func newBrowser(t *testing.T, maxRedirects int) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// openPage opens a page and returns the status and the text of the last one. to is the next
// redirect.
func openPage(t *testing.T, browser *http.Client, url string) (status int, text, to string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), resp.Header.Get("Location")
}

// userGateway is a gateway with users of one authorization server and an upstream of another one,
// at which each user has an account.
type userGateway struct {
	*testUser
	users, accounts *authtest.Server
	remote          *userUpstream
	url             string
}

func startUserGateway(t *testing.T) *userGateway {
	t.Helper()
	g := &userGateway{
		testUser: newTestUser(t), users: authtest.Start(t, &authtest.Options{User: "ann"}),
		accounts: authtest.Start(t, &authtest.Options{User: "ann-at-remote", Clients: []authtest.Client{{ID: "gateway", Secret: "canary-secret"}}}),
	}
	g.remote = startUserUpstream(t, g.accounts)
	g.writeFile(g.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q]}}, "mcpServers": {"remote": {"url": %q, "oauth": {
		"issuer": %q, "clientId": "gateway", "clientSecret": "canary-secret", "grant": "client_credentials", "per": "user"}}}}`,
		g.users.Issuer, g.remote.URL, g.accounts.Issuer))
	g.start()
	return g
}

func (g *userGateway) start() {
	g.url = g.startDaemon()
	g.awaitStates(map[string]hub.Status{"remote": hub.Ready})
}

// callAs calls the tool whoami as a user. elicit opens pages; nil means a client that cannot.
func (g *userGateway) callAs(t *testing.T, user string, r mcp.Revision, elicit func(url string) mcp.ElicitAction) *mcp.CallToolResult {
	t.Helper()
	o := &client.Options{Wire: client.Wire{Revision: r}, HTTP: client.HTTP{Header: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + tokenOf(g.users, user, "app", g.url)}}, nil
	}}}
	if elicit != nil {
		o.Answers.ElicitURL = true
		o.Answers.Elicit = func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: elicit(q.URL)}, nil
		}
	}
	c, err := client.Dial(t.Context(), g.url+"/mcp", o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "remote__whoami"})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func resultText(res *mcp.CallToolResult) string {
	if len(res.Content) == 0 {
		return ""
	}
	return res.Content[0].Text
}

// TestUserLoginPage checks that a user of the gateway logs in at an upstream by a URL elicitation,
// that the login outlives the gateway, and that no other user gets it.
func TestUserLoginPage(t *testing.T) {
	t.Parallel()
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
		t.Run(string(revision), func(t *testing.T) {
			t.Parallel()
			g := startUserGateway(t)
			pages := 0
			res := g.callAs(t, "ann", revision, func(url string) mcp.ElicitAction {
				pages++
				if !strings.HasPrefix(url, g.url+"/login/") || strings.Contains(url, "ann") {
					t.Errorf("the page is at %s", url)
				}
				if status, text, _ := openPage(t, newBrowser(t, 10), url); status != 200 || !strings.Contains(text, "You are logged in at remote") {
					t.Errorf("the page: status %d with %s", status, text)
				}
				return mcp.ElicitAccept
			})
			if text := resultText(res); pages != 1 || res.IsError || !strings.Contains(text, "subject=ann-at-remote") {
				t.Errorf("%d pages, then %s", pages, text)
			}
			g.stopDaemon()
			g.start()
			if text := resultText(g.callAs(t, "ann", revision, nil)); !strings.Contains(text, "subject=ann-at-remote") {
				t.Errorf("after a restart: %s", text)
			}
			res = g.callAs(t, "bob", revision, func(string) mcp.ElicitAction { return mcp.ElicitDecline })
			if text := resultText(res); !res.IsError || strings.Contains(text, "ann") {
				t.Errorf("another user, who declines: %s", text)
			}
			res = g.callAs(t, "bob", revision, nil)
			if text := resultText(res); !res.IsError || !strings.Contains(text, "open "+g.url+"/login/") {
				t.Errorf("a client that cannot open pages: %s", text)
			}
			g.stopDaemon()
		})
	}
}

// TestUserLoginPageOfAnother checks that a page logs in the user of the refused request only, and
// that all steps happen in one browser (client/elicitation: phishing).
func TestUserLoginPageOfAnother(t *testing.T) {
	t.Parallel()
	g := startUserGateway(t)
	pageOf := func(user string) string {
		t.Helper()
		text := resultText(g.callAs(t, user, mcp.LatestRevision, nil))
		_, rest, _ := strings.Cut(text, "open ")
		page, _, _ := strings.Cut(rest, " ")
		return page
	}
	bob := pageOf("bob")
	if again := pageOf("bob"); again != bob {
		t.Errorf("two pages for one user: %s and %s", bob, again)
	}
	if status, text, _ := openPage(t, newBrowser(t, 10), bob); status != 403 || !strings.Contains(text, "another user") {
		t.Errorf("ann opens the page of bob: status %d with %s", status, text)
	}
	if n := g.accounts.Count("authorize"); n != 0 {
		t.Errorf("%d logins at the upstream, want none", n)
	}
	ann, mine, other := pageOf("ann"), newBrowser(t, 1), newBrowser(t, 10)
	// Ann's browser has been at her authorization server and has the redirect back.
	_, _, callback := openPage(t, mine, ann)
	if !strings.Contains(callback, "/login/callback?") {
		t.Fatalf("the redirect is %s", callback)
	}
	for name, tt := range map[string]struct {
		browser *http.Client
		url     string
		status  int
	}{
		"another browser": {other, callback, 403},
		"another state":   {mine, g.url + "/login/callback?state=0123456789abcdef&code=x", 400},
		"no page":         {mine, g.url + "/login/0123456789abcdef", 404},
	} {
		if status, text, _ := openPage(t, tt.browser, tt.url); status != tt.status {
			t.Errorf("%s: status %d with %s, want %d", name, status, text, tt.status)
		}
	}
	// She is sent on to the upstream's authorization server, and the redirect from there is bound,
	// too.
	_, _, second := openPage(t, mine, callback)
	if !strings.Contains(second, "/login/callback?") {
		t.Fatalf("the second redirect is %s", second)
	}
	if status, text, _ := openPage(t, other, second); status != 403 {
		t.Errorf("the second redirect in another browser: status %d with %s", status, text)
	}
	if status, text, _ := openPage(t, mine, second); status != 200 {
		t.Errorf("the second redirect: status %d with %s", status, text)
	}
	for _, used := range []string{callback, second} {
		if status, text, _ := openPage(t, mine, used); status != 400 {
			t.Errorf("a redirect that was used: status %d with %s", status, text)
		}
	}
	if text := resultText(g.callAs(t, "ann", mcp.LatestRevision, nil)); !strings.Contains(text, "subject=ann-at-remote") {
		t.Errorf("after the login: %s", text)
	}
	if n := g.users.Count("register"); n != 1 {
		t.Errorf("the gateway has registered %d times at its authorization server, want once", n)
	}
	g.stopDaemon()
	seen := g.remote.text() + g.output()
	for _, token := range []string{tokenOf(g.users, "ann", "app", g.url)} {
		if payload := strings.Split(token, ".")[1]; strings.Contains(seen, payload[:40]) {
			t.Error("a token for the gateway is in the requests to the upstream or in the output")
		}
	}
}

// TestUserLoginPageScopes checks that a user logs in again for scopes that a call turns out to
// need.
func TestUserLoginPageScopes(t *testing.T) {
	t.Parallel()
	g := startUserGateway(t)
	pages := 0
	visit := func(url string) mcp.ElicitAction {
		pages++
		if status, text, _ := openPage(t, newBrowser(t, 10), url); status != 200 {
			t.Errorf("the page: status %d with %s", status, text)
		}
		return mcp.ElicitAccept
	}
	for n, scopes := range [][]string{nil, {"read"}, {"read", "write"}} {
		g.remote.SetServer(nil, scopes...)
		if text := resultText(g.callAs(t, "ann", mcp.LatestRevision, visit)); pages != n+1 || !strings.Contains(text, "subject=ann-at-remote") {
			t.Errorf("with the scopes %v: %d pages, then %s", scopes, pages, text)
		}
	}
	logins := g.accounts.Requests("authorize")
	if last := logins[len(logins)-1].Form.Get("scope"); last != "read write" {
		t.Errorf("the last login has asked for %q", last)
	}
	g.stopDaemon()
}
