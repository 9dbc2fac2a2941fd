package auth

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A server that refuses the registration of a client says why, and the user learns it.
func TestRefusedRegistration(t *testing.T) {
	t.Parallel()
	for _, quirk := range []string{"registration-refused", "registration-token"} {
		s := newSetup(t, &authtest.Options{Quirks: []string{quirk, "no-documents"}}, Options{})
		_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
		var needs *NeedsLogin
		if !errors.As(err, &needs) || !strings.Contains(err.Error(), "the client cannot be registered: ") {
			t.Errorf("%s: %v", quirk, err)
		}
		s.wantCounts(map[string]int{"register": 1, "authorize": 0})
	}
}

// A login without a refresh token works until its access token expires, and then leads to another
// login.
func TestNoRefreshToken(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"refresh-offline-scope"}}, Options{}, "notes")
	s.mustPost(s.Transport)
	if r := s.record(s.Transport); r.RefreshToken != "" {
		t.Fatal("the server has given a refresh token")
	}
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"authorize": 1})
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"authorize": 2, "refresh_token": 0})
}

// A redirect goes to this machine or to an https address.
func TestCheckRedirectURI(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"http://127.0.0.1:1/callback": true, "http://localhost/callback": true, "http://[::1]:1/callback": true, "https://dowel.example/callback": true,
		"http://dowel.example/callback": false, "http://127.0.0.1.example/": false, "dowel://callback": false, "javascript:alert(1)": false, "": false,
	} {
		if err := checkRedirectURI(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// The scopes of a challenge are asked for exactly, whatever the metadata of the server lists.
func TestScopesOfChallenge(t *testing.T) {
	t.Parallel()
	d := &discovery{scopes: []string{"notes:read", "admin"}}
	for _, tt := range []struct {
		name string
		n    *need
		want []string
	}{
		{"a scope that the metadata does not list", &need{kind: renewal, challenge: challenge{scopes: []string{"notes:write"}}}, []string{"notes:write"}},
		{"fewer scopes than the metadata lists", &need{kind: renewal, challenge: challenge{scopes: []string{"notes:read"}}}, []string{"notes:read"}},
		{"no scopes", &need{kind: renewal}, []string{"notes:read", "admin"}},
		{
			"a step-up", &need{kind: stepUp, failed: &credential{requested: []string{"old"}}, challenge: challenge{scopes: []string{"notes:write"}}},
			[]string{"old", "notes:write"},
		},
	} {
		if got, _ := new(Transport).chooseScopes(tt.n, d, &Record{}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The identifier of a server is its canonical URI, which the parameter resource carries.
func TestServerIdentifier(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"HTTPS://MCP.Example.com/Path": "https://mcp.example.com/Path", "https://mcp.example.com/": "https://mcp.example.com",
		"https://mcp.example.com/mcp#part": "https://mcp.example.com/mcp", "wss://mcp.example.com/ws": "https://mcp.example.com/ws",
	} {
		tr, err := NewTransport(address, nil)
		if err != nil {
			t.Errorf("%s: %v", address, err)
		} else if tr.server != want {
			t.Errorf("%s: %s, want %s", address, tr.server, want)
		}
	}
}

// Metadata of an authorization server without the members that a login needs is not used.
func TestIncompleteServerMetadata(t *testing.T) {
	t.Parallel()
	const issuer = "https://as.example"
	whole := oauth.ServerMetadata{Issuer: issuer, TokenEndpoint: issuer + "/token"}
	noToken, noIssuer := whole, whole
	noToken.TokenEndpoint, noIssuer.Issuer = "", ""
	for _, tt := range []struct {
		m      oauth.ServerMetadata
		issuer string
		want   string // in the error
	}{{whole, issuer, ""}, {noToken, issuer, "token_endpoint"}, {noIssuer, issuer, "issuer"}, {noIssuer, "", "no issuer"}} {
		switch err := checkServer(&tt.m, tt.issuer); {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%+v: %v, want %q", tt.m, err, tt.want)
		}
	}
}
