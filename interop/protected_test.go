package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// lookUpToken asks the authorization server about a token (RFC 7662), for a server on the Go SDK.
func lookUpToken(as *authtest.Server) sdkauth.TokenVerifier {
	return func(ctx context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		form := url.Values{"token": {token}}.Encode()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, as.URL+"/introspect", strings.NewReader(form))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("rs", "secret")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		var found struct {
			Active bool   `json:"active"`
			Scope  string `json:"scope"`
			Sub    string `json:"sub"`
			Exp    int64  `json:"exp"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
			return nil, err
		}
		if !found.Active {
			return nil, fmt.Errorf("%w: unknown or expired", sdkauth.ErrInvalidToken)
		}
		return &sdkauth.TokenInfo{Scopes: strings.Fields(found.Scope), Expiration: time.Unix(found.Exp, 0), UserID: found.Sub}, nil
	}
}

// startProtectedGoServer starts a server on the official Go SDK that accepts the tokens of as, and
// returns its URL. The tool write needs a scope more than the tool read.
func startProtectedGoServer(t *testing.T, as *authtest.Server) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	for _, name := range []string{"read", "write"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.TokenInfo.UserID}}}, nil, nil
		})
	}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	metadata := "/.well-known/oauth-protected-resource/mcp"
	mux.Handle(metadata, sdkauth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: web.URL + "/mcp", AuthorizationServers: []string{as.Issuer}, ScopesSupported: []string{"notes:read", "notes:write"},
	}))
	endpoint := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	protect := func(scopes ...string) http.Handler {
		return sdkauth.RequireBearerToken(lookUpToken(as), &sdkauth.RequireBearerTokenOptions{ResourceMetadataURL: web.URL + metadata, Scopes: scopes})(endpoint)
	}
	read, write := protect("notes:read"), protect("notes:read", "notes:write")
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"name":"write"`)) {
			write.ServeHTTP(w, r)
			return
		}
		read.ServeHTTP(w, r)
	})
	return web.URL + "/mcp"
}

// TestProtectedServers logs dowel's client in at servers on the other SDKs, with a step-up, a
// refresh and a login that was revoked.
func TestProtectedServers(t *testing.T) {
	t.Parallel()
	typeScript := func(version string) func(*testing.T, *authtest.Server) string {
		return func(t *testing.T, as *authtest.Server) string {
			return startService(t, func(port string) []string {
				return []string{"env", "PORT=" + port, "node", scriptPath(t, "server-login.mjs"), version, as.Issuer}
			}).urlOf("/mcp")
		}
	}
	for name, start := range map[string]func(*testing.T, *authtest.Server) string{
		"Go SDK": startProtectedGoServer, "TypeScript SDK v1": typeScript("v1"), "TypeScript SDK v2": typeScript("v2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := authtest.Start(t, &authtest.Options{
				Scopes: []string{"notes:read", "notes:write"}, Clients: []authtest.Client{{ID: "rs", Secret: "secret"}},
			})
			to := start(t, as)
			tr, err := auth.NewTransport(to, &auth.Options{Login: auth.LoginFunc(followBrowser)})
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.Dial(t.Context(), to, &client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: tr}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			call := func(tool string) {
				t.Helper()
				if got, err := client.Call[string](t.Context(), c, tool, nil); err != nil || got != "alice" {
					t.Fatalf("%s: %q, %v", tool, got, err)
				}
			}
			call("read")
			call("write")
			as.Advance(2 * time.Hour)
			call("write")
			if n := as.Count("refresh_token"); n != 1 {
				t.Errorf("%d refreshes, want 1", n)
			}
			as.Revoke(true, false)
			call("write")
			expectLogins(t, as, "notes:read", "notes:read notes:write", "notes:read notes:write")
		})
	}
}
