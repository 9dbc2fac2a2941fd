//go:build unix

package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// tokenHeader returns the header field with the gateway's token.
func (u *testUser) tokenHeader() http.Header {
	u.t.Helper()
	_, value, ok := strings.Cut(strings.TrimSpace(u.expectSuccess("Authorization: Bearer ", "status", "--token")), ": ")
	if !ok {
		u.t.Fatal("dowel status --token prints no header")
	}
	return http.Header{"Authorization": {value}}
}

// request sends a request without a body and returns the status and the text of the answer.
func (u *testUser) request(method, url string, header http.Header) (int, string) {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), method, url, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Requests that another user or a web page can send to the loopback address are refused: without
// the token, from pages of other ports, and from other sites.
func TestUpRefusesStrangers(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	url := p.startDaemon()
	own := p.tokenHeader()
	with := func(fields ...string) http.Header {
		h := own.Clone()
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		return h
	}
	for _, test := range []struct {
		name, method, path string
		header             http.Header
		code               int
		text               string
	}{
		{"no token", "POST", "/mcp", http.Header{}, 401, "dowel status --token"},
		{"wrong token", "POST", "/mcp", http.Header{"Authorization": {"Bearer x"}}, 401, "dowel up --stdio"},
		{"status without token", "GET", "/status.json", http.Header{}, 401, "token"},
		{"metadata", "GET", "/.well-known/oauth-protected-resource/mcp", http.Header{}, 404, "dowel status --token"},
		{"another port's page", "POST", "/mcp", with("Origin", "http://localhost:3000"), 403, "--origin"},
		{"another port's preflight", "OPTIONS", "/mcp", http.Header{"Origin": {"http://127.0.0.1:9999"}, "Access-Control-Request-Method": {"POST"}}, 403, "--origin"},
		{"another site reads", "GET", "/status.json", with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403, "--origin"},
		{"another port reads", "GET", "/sse", with("Sec-Fetch-Site", "same-site"), 403, "--origin"},
		{"a link to the data", "GET", "/status.json", with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403, ""},
		{"a link to the page", "GET", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}}, 302, "/console/"},
		{"a fetch of the console by another port", "GET", "/console/", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403, "dowel console"},
		{"the console's API with the gateway's token", "GET", "/console/api/v1/status", own, 401, "dowel console"},
		{"its own page", "GET", "/status.json", with("Origin", url, "Sec-Fetch-Site", "same-origin"), 200, "everything"},
		{"the token", "GET", "/status.json", own, 200, "everything"},
	} {
		if code, text := p.request(test.method, url+test.path, test.header); code != test.code || !strings.Contains(text, test.text) {
			t.Errorf("%s: %d %s", test.name, code, text)
		}
	}
	p.expectSuccess("everything__echo", "tools", "--url", url+"/mcp") // finds the token
	p.expectSuccess("everything__echo", "tools", "--url", strings.Replace(url, "127.0.0.1", "localhost", 1)+"/sse")
	p.expectSuccess("everything__echo", "tools", "--url", strings.Replace(url, "http", "ws", 1)+"/ws")
	p.expectSuccess("Authorization: Bearer ", "status", "--token", "--renew")
	if code, _ := p.request("GET", url+"/status.json", own); code != 401 {
		t.Errorf("the replaced token: %d", code)
	}
	if code, _ := p.request("GET", url+"/status.json", p.tokenHeader()); code != 200 {
		t.Errorf("the new token: %d", code)
	}
}

// gateway.open lets every program of this machine in, but only at a loopback address, and only if
// the user's own file says so.
func TestOpenGateway(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"gateway": {"open": true}}`)
	url := p.startDaemon()
	if code, _ := p.request("GET", url+"/status.json", nil); code != 200 {
		t.Errorf("%d", code)
	}
	if code, _ := p.request("GET", url+"/status.json", http.Header{"Origin": {"http://localhost:3000"}}); code != 403 {
		t.Errorf("a page of another port: %d", code)
	}
	p.expectSuccess("It is open", "status")
	p.expectFailure(exit.Failed, "gateway.open", "status", "--token")

	q := newTestUser(t)
	q.writeFile(q.userFile(), `{"gateway": {"open": true}}`)
	q.expectFailure(exit.Failed, "other machines can reach", "up", "--http", "0.0.0.0:0")
	q.writeFile(q.userFile(), `{"gateway": {"open": true, "token": "x"}}`)
	q.expectFailure(exit.Failed, "remove one of the two", "up", "--http", "0")
}

// A client with a token of its own reaches its own gateway only, until the token is removed from
// the file.
func TestClientOwnToken(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"gateway": {"clients": {"ci": {"token": "token-of-ci", "toolSearch": true}}}}`)
	url := p.startDaemon()
	header := "Authorization: Bearer token-of-ci"
	p.expectSuccess("search_tools", "tools", "--url", url+"/mcp", "-H", header)
	if code, text := p.request("GET", url+"/status.json", http.Header{"Authorization": {"Bearer token-of-ci"}}); code != 403 || !strings.Contains(text, "ci") {
		t.Errorf("%d %s", code, text)
	}
	p.writeFile(p.userFile(), `{"gateway": {"clients": {"ci": {"toolSearch": true}}}}`)
	polltest.Until(t, "the removed token is refused", func() bool {
		code, _ := p.request("POST", url+"/mcp", http.Header{"Authorization": {"Bearer token-of-ci"}})
		return code == 401
	})
}

// A user of an older dowel learns once that clients at a loopback address need a token.
func TestTokenNotice(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.expectSuccess("", "servers", "disable", "kv") // writes the state, as an older dowel did
	for range 2 {
		p.startDaemon()
		p.stopDaemon()
	}
	if n := strings.Count(p.output(), "new in this version"); n != 1 {
		t.Errorf("the notice is shown %d times:\n%s", n, p.output())
	}
}
