//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// fetch returns the answer to a request and its body.
func fetch(t *testing.T, method, url, token, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// callTool calls a tool in the latest revision.
func callTool(t *testing.T, url, token, tool, arguments string) (*http.Response, string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		tool, arguments, mcp.LatestRevision)
	return fetch(t, http.MethodPost, url, token, body, "Mcp-Protocol-Version", string(mcp.LatestRevision), "Mcp-Method", "tools/call", "Mcp-Name", tool)
}

func TestServeAuth(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	base, stop := serveOverHTTP(t, "everything", "--auth", "issuer="+as.Issuer+",scope=use")
	for _, path := range []string{"/mcp", "/sse", "/ws"} {
		resp, _ := fetch(t, http.MethodGet, base+path, "", "")
		want := `Bearer scope="use", resource_metadata="` + base + `/.well-known/oauth-protected-resource` + path + `"`
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != want {
			t.Errorf("%s without a token: status %d with %s, want 401 with %s", path, resp.StatusCode, got, want)
		}
		_, text := fetch(t, http.MethodGet, base+"/.well-known/oauth-protected-resource"+path, "", "")
		var document struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil || document.Resource != base+path || len(document.Servers) != 1 || document.Servers[0] != as.Issuer {
			t.Errorf("%s: the metadata is %s", path, text)
		}
	}
	header := "Authorization: Bearer " + as.IssueToken(base, "use")
	for _, url := range []string{base + "/mcp", base + "/sse", "ws" + strings.TrimPrefix(base, "http") + "/ws"} {
		if out := runDowel(t, "", "call", "echo", "message=hi", "--url", url, "-H", header); out.code != 0 || out.stdout != "hi\n" {
			t.Errorf("%s with a token: %+v", url, out)
		}
		if out := runDowel(t, "", "call", "echo", "message=hi", "--url", url, "-H", "Authorization: Bearer "+as.IssueToken("https://other.example/mcp", "use")); out.code == 0 {
			t.Errorf("%s with the token of another server: %+v", url, out)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
}

func TestServeAuthMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"--auth", "issuer=https://as.example.com"}, "need --http"},
		{[]string{"--http", "0", "--open", "--auth", "issuer=https://as.example.com"}, "use one of them"},
		{[]string{"--http", "0", "--auth", "https://as.example.com"}, "is not KEY=VALUE"},
		{[]string{"--http", "0", "--auth", "scope=a"}, "add issuer=URL"},
		{[]string{"--http", "0", "--auth", "isuer=https://as.example.com"}, "did you mean issuer?"},
		{[]string{"--http", "0", "--auth", "issuer=https://as.example.com,dpop=yes"}, "want offered or required"},
		{[]string{"--http", "0", "--auth", "issuer=https://as.example.com,requireType=yes"}, "want true or false"},
		{[]string{"--http", "0", "--auth", "issuer=http://as.example.com"}, "is not encrypted"},
		{[]string{"--http", "0.0.0.0:0", "--auth", "issuer=https://as.example.com"}, "set url to the address that clients use"},
	} {
		if out := runDowel(t, "", append([]string{"serve", "everything"}, tt.words...)...); out.code != exit.Usage || !strings.Contains(out.stderr, tt.want) {
			t.Errorf("%v: exit code %d with %s, want %d with %s", tt.words, out.code, out.stderr, exit.Usage, tt.want)
		}
	}
}

// recordingUpstream is a server over HTTP that records all that it receives, and refuses the calls
// of one tool like a server that wants other credentials.
type recordingUpstream struct {
	mu   sync.Mutex
	seen bytes.Buffer
	url  string
}

func startRecordingUpstream(t *testing.T) *recordingUpstream {
	t.Helper()
	s := server.New("remote", "1", nil)
	for _, tool := range []string{"echo", "refuse401", "refuse403"} {
		server.Tool(s, tool, "", func(_ context.Context, in struct {
			Message string `json:"message,omitempty"`
		}) (string, error) {
			return in.Message, nil
		})
	}
	endpoint := streamable.Handler(s, nil)
	u := &recordingUpstream{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		fmt.Fprintln(&u.seen, r.Method, r.URL)
		_ = r.Header.Write(&u.seen)
		u.seen.Write(body)
		u.mu.Unlock()
		for status, tool := range map[int]string{401: "refuse401", 403: "refuse403"} {
			if bytes.Contains(body, []byte(`"`+tool+`"`)) && bytes.Contains(body, []byte("tools/call")) {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="upstream", resource_metadata="https://upstream.example/metadata"`)
				w.WriteHeader(status)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		endpoint.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ended) // no client waits for its calls
		web.Close()
	})
	u.url = web.URL + "/mcp"
	return u
}

func (u *recordingUpstream) text() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen.String()
}

// TestGatewayAuth checks that a gateway with gateway.auth accepts access tokens for itself, that no
// upstream and no record ever sees one, and that the refusal of an upstream is not the gateway's
// own.
func TestGatewayAuth(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	remote := startRecordingUpstream(t)
	p := newTestUser(t)
	input, environment, audit := filepath.Join(p.home, "stdin"), filepath.Join(p.home, "environment"), filepath.Join(p.home, "audit.jsonl")
	script, err := json.Marshal(fmt.Sprintf("env > '%s'; tee '%s' | '%s' %s", environment, input, testBinary(t), serverWord))
	if err != nil {
		t.Fatal(err)
	}
	p.writeFile(p.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q], "scopes": ["use"]}, "audit": %q, "auditArguments": true},
		"mcpServers": {"remote": {"url": %q}, "local": {"command": "/bin/sh", "args": ["-c", %s]}}}`, as.Issuer, audit, remote.url, script))
	url := p.startDaemon()
	p.awaitStates(map[string]hub.Status{"remote": hub.Ready, "local": hub.Ready})
	resp, _ := fetch(t, http.MethodPost, url+"/mcp", "", "{}")
	want := `Bearer scope="use", resource_metadata="` + url + `/.well-known/oauth-protected-resource/mcp"`
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != want {
		t.Errorf("without a token: status %d with %s, want 401 with %s", resp.StatusCode, got, want)
	}
	if _, text := fetch(t, http.MethodGet, url+"/.well-known/oauth-protected-resource/mcp", "", ""); !strings.Contains(text, `"resource":"`+url+`/mcp"`) {
		t.Errorf("the metadata is %s", text)
	}
	token := as.IssueToken(url+"/mcp", "use")
	for _, path := range []string{"/", "/status.json"} {
		if resp, text := fetch(t, http.MethodGet, url+path, as.IssueToken(url, "use"), ""); resp.StatusCode != 404 {
			t.Errorf("GET %s: status %d with %.200s, want 404: the page is the owner's", path, resp.StatusCode, text)
		}
	}
	for _, tool := range []string{"remote__echo", "local__echo"} {
		if resp, text := callTool(t, url+"/mcp", token, tool, `{"message":"hi"}`); resp.StatusCode != 200 || !strings.Contains(text, "hi") {
			t.Errorf("%s: status %d with %s", tool, resp.StatusCode, text)
		}
	}
	for _, tool := range []string{"remote__refuse401", "remote__refuse403"} {
		resp, text := callTool(t, url+"/mcp", token, tool, `{}`)
		if resp.StatusCode != 200 || resp.Header.Get("WWW-Authenticate") != "" || !strings.Contains(text, "remote") || strings.Contains(text, "upstream.example") {
			t.Errorf("%s: status %d, header %v, body %s; want 200 with an error about remote", tool, resp.StatusCode, resp.Header, text)
		}
	}
	header := "Authorization: Bearer " + token
	p.expectSuccess("hi", "call", "remote__echo", "message=hi", "--url", url+"/mcp", "-H", header, "--revision", "2025-06-18")
	p.expectSuccess("hi", "call", "local__echo", "message=hi", "--url", url+"/mcp", "-H", header, "--revision", "2025-06-18")
	if resp, _ := fetch(t, http.MethodPost, url+"/mcp/remote", token, "{}"); resp.StatusCode != 401 {
		t.Errorf("a token for /mcp at /mcp/remote: status %d, want 401", resp.StatusCode)
	}
	p.expectFailure(exit.Failed, "access tokens of the authorization servers", "status", "--token")
	p.stopDaemon()
	signature := token[strings.LastIndexByte(token, '.')+1:]
	for what, text := range map[string]string{
		"the HTTP upstream": remote.text(), "the input of the stdio upstream": readAll(t, input), "its environment": readAll(t, environment),
		"the audit": readAll(t, audit), "the output of dowel": p.output(),
	} {
		if strings.Contains(text, signature) {
			t.Errorf("%s has the token of the client", what)
		}
	}
	if !strings.Contains(readAll(t, input), "tools/call") || !strings.Contains(remote.text(), "tools/call") || !strings.Contains(readAll(t, audit), as.Issuer+"#alice") {
		t.Errorf("the records are incomplete: %s\n%s\n%s", readAll(t, input), remote.text(), readAll(t, audit))
	}
	p.writeFile(p.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q]}, "token": "x"}}`, as.Issuer))
	p.expectFailure(exit.Failed, "gateway.token would have no effect", "up", "--http", "0")
	p.writeFile(p.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q]}}}`, as.Issuer))
	p.expectFailure(exit.Failed, "other machines can reach", "up", "--http", "0.0.0.0:0")
}

// TestGatewayServerScopes checks that a server of the gateway can be kept for tokens with more
// scopes, whichever way leads to it.
func TestGatewayServerScopes(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	p := newTestUser(t)
	p.writeFile(p.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q], "servers": {"closed": ["closed"], "gone": ["x"]}}, "clients": {"ci": {"toolSearch": true}}},
		"mcpServers": {"closed": %s, "free": %s}}`, as.Issuer, p.builtInEntry("everything", ""), p.builtInEntry("everything", "")))
	url := p.startDaemon()
	p.awaitStates(map[string]hub.Status{"closed": hub.Ready, "free": hub.Ready})
	few, enough := as.IssueToken(url), as.IssueToken(url, "closed")
	for _, tt := range []struct{ path, tool, arguments string }{
		{"/mcp", "closed__echo", `{"message":"hi"}`},
		{"/mcp/closed", "echo", `{"message":"hi"}`},
		{"/client/ci/mcp", "call_tool", `{"name":"closed__echo","arguments":{"message":"hi"}}`},
	} {
		resp, text := callTool(t, url+tt.path, few, tt.tool, tt.arguments)
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 403 || !strings.Contains(got, `error="insufficient_scope"`) || !strings.Contains(got, `scope="closed"`) {
			t.Errorf("%s at %s: status %d with %s and %s, want 403 for the scope closed", tt.tool, tt.path, resp.StatusCode, got, text)
		}
		if resp, text := callTool(t, url+tt.path, enough, tt.tool, tt.arguments); resp.StatusCode != 200 || !strings.Contains(text, "hi") {
			t.Errorf("%s at %s with the scope: status %d with %s", tt.tool, tt.path, resp.StatusCode, text)
		}
	}
	if resp, text := callTool(t, url+"/mcp", few, "free__echo", `{"message":"hi"}`); resp.StatusCode != 200 || !strings.Contains(text, "hi") {
		t.Errorf("another server: status %d with %s", resp.StatusCode, text)
	}
	header := "Authorization: Bearer " + few
	for _, words := range [][]string{{"read", "test://static-text", "--url", url + "/mcp/closed"}, {"prompt", "test_simple_prompt", "--url", url + "/mcp/closed"}} {
		for _, revision := range []string{string(mcp.LatestRevision), "2025-06-18"} {
			if out := p.runDowel(append(words, "-H", header, "--revision", revision)...); out.code == 0 || !strings.Contains(out.stderr, "closed") {
				t.Errorf("%v in %s: %+v", words, revision, out)
			}
		}
	}
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	session, _ := fetch(t, http.MethodPost, url+"/mcp/closed", few, initialize)
	subscribe := `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"test://static-text"}}`
	if resp, text := fetch(t, http.MethodPost, url+"/mcp/closed", few, subscribe, "Mcp-Session-Id", session.Header.Get("Mcp-Session-Id")); resp.StatusCode != 403 {
		t.Errorf("a subscription: status %d with %s, want 403", resp.StatusCode, text)
	}
	if out := p.runDowel("call", "echo", "message=hi", "--url", "ws"+strings.TrimPrefix(url, "http")+"/ws/closed", "-H", header); out.code == 0 || !strings.Contains(out.stderr, "closed") {
		t.Errorf("WebSocket: %+v", out)
	}
	p.expectSuccess("hi", "call", "closed.echo", "message=hi") // the owner needs no token
	if !strings.Contains(p.output(), "gateway.auth.servers names the server gone") {
		t.Errorf("no warning of a server that does not exist: %s", p.output())
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
