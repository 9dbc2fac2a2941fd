//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// userUpstream is an upstream behind an authorization server. Its tool whoami returns the subject
// of the access token, and it records all requests.
type userUpstream struct {
	*authtest.Resource
	mu   sync.Mutex
	seen bytes.Buffer
}

type subjectKey struct{}

func startUserUpstream(t *testing.T, as *authtest.Server, scopes ...string) *userUpstream {
	t.Helper()
	s := server.New("remote", "1", nil)
	server.Tool(s, "whoami", "", func(ctx context.Context, _ struct{}) (string, error) {
		subject, _ := ctx.Value(subjectKey{}).(string)
		return "subject=" + subject, nil
	})
	endpoint := streamable.Handler(s, nil)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ended) // without waiting for its calls
	})
	u := &userUpstream{}
	u.Resource = as.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		fmt.Fprintf(&u.seen, "%s %s %v %s\n", r.Method, r.URL, r.Header, body)
		u.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		endpoint.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), subjectKey{}, subjectOf(r.Header.Get("Authorization")))))
	}), scopes...)
	return u
}

// subjectOf returns the subject of a signed token.
func subjectOf(token string) string {
	var claims struct {
		Sub string `json:"sub"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(raw, &claims)
	}
	return claims.Sub
}

// text returns all that the upstream has received, refused requests too.
func (u *userUpstream) text() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprint(u.seen.String(), u.Headers())
}

// tokenOf returns a token of a user for the gateway.
func tokenOf(as *authtest.Server, user, client, gateway string) string {
	return as.Sign(nil, map[string]any{
		"iss": as.Issuer, "sub": user, "aud": gateway, "client_id": client, "exp": as.Now().Add(time.Hour).Unix(), "scope": "use",
	})
}

// TestUserTokenExchange checks that each user of the gateway reaches a server with a token of its
// own, that the token for the gateway reaches the authorization server only, and that the refusal
// of the server or of its authorization server is not the gateway's own.
func TestUserTokenExchange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grant, oauth string
		quirks       []string
	}{
		"rfc8693": {"token-exchange", `"exchange": "rfc8693"`, nil},
		"id-jag":  {"jwt-bearer", `"exchange": "id-jag", "idpTokenUrl": "IDP/token", "idpClientId": "dowel", "idpClientSecret": "canary-secret"`, nil},
		"entra":   {"jwt-bearer", `"exchange": "entra", "scopes": ["api://remote/.default"]`, []string{"resource-ignored"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refuses atomic.Bool
			idp := authtest.Start(t, &authtest.Options{Clients: []authtest.Client{{ID: "dowel", Secret: "canary-secret"}}})
			as := authtest.Start(t, &authtest.Options{
				Clients: []authtest.Client{{ID: "gateway", Secret: "canary-secret"}}, Quirks: tt.quirks, IdentityProvider: idp,
				OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
					if endpoint != tt.grant || !refuses.Load() {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"error": "invalid_grant", "error_description": "the user is locked"}`)
					return true
				},
			})
			remote, issuer := startUserUpstream(t, as), as
			if name == "id-jag" { // the users of the gateway log in at their organization
				issuer = idp
			}
			p := newTestUser(t)
			p.writeFile(p.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q]}}, "mcpServers": {"remote": {"url": %q, "oauth": {
				"issuer": %q, "clientId": "gateway", "clientSecret": "canary-secret", "grant": "client_credentials", "per": "user", %s}}}}`,
				issuer.Issuer, remote.URL, as.Issuer, strings.Replace(tt.oauth, "IDP", idp.URL, 1)))
			url := p.startDaemon()
			p.awaitStates(map[string]hub.Status{"remote": hub.Ready})
			var tokens []string
			expectUser := func(user, client string) {
				t.Helper()
				token := tokenOf(issuer, user, client, url)
				tokens = append(tokens, token)
				if resp, text := callTool(t, url+"/mcp", token, "remote__whoami", "{}"); resp.StatusCode != 200 || !strings.Contains(text, "subject="+user) {
					t.Errorf("%s: status %d with %s", user, resp.StatusCode, text)
				}
			}
			expectUser("ann", "app")
			expectUser("bob", "app")
			expectUser("ann", "app")   // with the token that she has
			expectUser("ann", "other") // another client must not use it
			if n := as.Count(tt.grant); n != 3 {
				t.Errorf("%d exchanges, want 3", n)
			}
			legacy := tokenOf(issuer, "cid", "app", url)
			tokens = append(tokens, legacy)
			p.expectSuccess("subject=cid", "call", "remote__whoami", "--url", url+"/mcp", "-H", "Authorization: Bearer "+legacy, "--revision", "2025-06-18")
			p.expectSuccess("subject=gateway", "call", "remote.whoami") // the owner acts as the shared account
			as.Revoke(true, false)
			expectUser("ann", "app") // by another exchange
			as.Revoke(true, false)
			refuses.Store(true)
			resp, text := callTool(t, url+"/mcp", tokens[0], "remote__whoami", "{}")
			if resp.StatusCode != 200 || resp.Header.Get("WWW-Authenticate") != "" || !strings.Contains(text, `"isError":true`) || !strings.Contains(text, "the server remote refuses access") {
				t.Errorf("a refused exchange: status %d, header %v, body %s; want 200 with an error about remote", resp.StatusCode, resp.Header, text)
			}
			p.stopDaemon()
			seen, output := remote.text(), p.output()
			for _, token := range tokens {
				if signature := token[strings.LastIndexByte(token, '.')+1:]; strings.Contains(seen, signature) || strings.Contains(output, signature) {
					t.Errorf("the token of %s for the gateway is in the requests to the upstream, or in the output of dowel", subjectOf(token))
				}
			}
			if strings.Contains(seen+output, "canary-secret") {
				t.Error("the secret of the client has left dowel")
			}
		})
	}
}
