package interop

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// startResourceServer returns an authorization server and the address of a dowel server that
// accepts its tokens. The tool read needs the scope of every request, and the tool write one more.
func startResourceServer(t *testing.T) (as *authtest.Server, url string) {
	t.Helper()
	as = authtest.Start(t, &authtest.Options{Scopes: []string{"notes:read", "notes:write"}})
	s := server.New("notes", "1", nil)
	whoami := func(ctx context.Context, _ struct{}) (string, error) { return resource.FromContext(ctx).Subject, nil }
	server.Tool(s, "read", "Reads.", whoami)
	server.Tool(s, "write", "Writes.", whoami, server.ToolOptions{Scopes: []string{"notes:read", "notes:write"}})
	endpoint := streamable.Handler(s, nil)
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ended) // the test has ended
		web.Close()
	})
	guard, err := resource.New(resource.Options{URL: web.URL + "/mcp", Issuers: []resource.Issuer{{URL: as.Issuer}}, Scopes: []string{"notes:read"}})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/", guard.Protect(endpoint))
	return as, web.URL + "/mcp"
}

// expectLogins checks that the client has asked the user once for each of the scopes.
func expectLogins(t *testing.T, as *authtest.Server, scopes ...string) {
	t.Helper()
	var got []string
	for _, r := range as.Requests("authorize") {
		asked := strings.Fields(r.Form.Get("scope"))
		slices.Sort(asked)
		got = append(got, strings.Join(asked, " "))
	}
	if !slices.Equal(got, scopes) {
		t.Errorf("the user was asked for %q, want %q", got, scopes)
	}
}

// TestAuthorizedGoClient logs the client of the official Go SDK in, with a step-up.
func TestAuthorizedGoClient(t *testing.T) {
	t.Parallel()
	as, url := startResourceServer(t)
	const redirect = "http://127.0.0.1:1/callback"
	handler, err := sdkauth.NewAuthorizationCodeHandler(&sdkauth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "interop", RedirectURIs: []string{redirect}}},
		RedirectURL:                     redirect,
		AuthorizationCodeFetcher: func(ctx context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			back, err := as.Approve(ctx, args.URL)
			if err != nil {
				return nil, err
			}
			q := back.Query()
			return &sdkauth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, tool := range []string{"read", "write", "write"} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		if text, ok := res.Content[0].(*mcp.TextContent); !ok || text.Text != "alice" {
			t.Errorf("%s: %+v", tool, res.Content[0])
		}
	}
	expectLogins(t, as, "notes:read", "notes:read notes:write")
}

// TestAuthorizedTypeScriptClients logs the clients of the TypeScript SDKs in, with a step-up.
func TestAuthorizedTypeScriptClients(t *testing.T) {
	t.Parallel()
	for _, sdk := range []string{"v1", "v2"} {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			as, url := startResourceServer(t)
			cmd := exec.CommandContext(t.Context(), "node", scriptPath(t, "client-login.mjs"), sdk, url, "read", "write", "write")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != "alice\nalice\nalice\n" {
				t.Fatalf("%v: %s\n%s", err, out, &stderr)
			}
			expectLogins(t, as, "notes:read", "notes:read notes:write")
		})
	}
}
