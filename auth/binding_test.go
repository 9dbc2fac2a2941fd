package auth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A server that names one authorization server after the other gets the secrets of a client to the
// first only: also if that one refused them, and after a logout.
func TestSecretsStayWithTheirIssuer(t *testing.T) {
	t.Parallel()
	mine := authtest.Client{ID: "mine", Secret: "s3cret-canary"}
	assert := func(context.Context, AssertionRequest) (string, error) { return "assertion-canary", nil }
	client := Client{ID: mine.ID, Secret: mine.Secret}
	for _, tt := range []struct {
		name    string
		options Options
		refuses bool // the first authorization server refuses the client
	}{
		{"client credentials, refused", Options{ClientCredentials: true, Client: client}, true},
		{"client credentials, logged out", Options{ClientCredentials: true, Client: client}, false},
		{"assertion, refused", Options{Assertion: assert}, true},
		{"assertion of a client, refused", Options{Assertion: assert, Client: client}, true},
		{"code, refused", Options{Client: client}, true},
		{"code, logged out", Options{Client: client}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.options.Store = NewStore()
			s := newSetup(t, &authtest.Options{Clients: []authtest.Client{mine}, OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
				if endpoint == "token" || !tt.refuses || !strings.Contains("authorization_code client_credentials jwt-bearer", endpoint) {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
				return true
			}}, tt.options)
			if status, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); (err == nil) == tt.refuses {
				t.Fatalf("status %d, %v", status, err)
			}
			if !tt.refuses {
				if err := s.Logout(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			other := authtest.Start(t, &authtest.Options{Clients: []authtest.Client{mine}})
			s.rs.SetServer(other)
			s.login.as = other
			tt.options.Login = s.opts.Login
			_, err := post(t.Context(), s.newTransport(tt.options), s.rs.URL, "{}")
			var failed *DiscoveryError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), s.as.Issuer) {
				t.Errorf("%v", err)
			}
			if n := other.Count("token") + other.Count("authorize"); n != 0 {
				t.Errorf("the second authorization server got %d requests", n)
			}
			tt.options.Server.Issuer = other.Issuer
			_, _ = post(t.Context(), s.newTransport(tt.options), s.rs.URL, "{}")
			if n := other.Count("token"); n == 0 {
				t.Error("the second authorization server got nothing although the options name it")
			}
		})
	}
}

// A logout leaves no secret behind, and nothing of a client that was registered dynamically.
func TestLogoutKeepsTheIssuerOnly(t *testing.T) {
	t.Parallel()
	mine := authtest.Client{ID: "mine", Secret: "s3cret-canary"}
	s := newSetup(t, &authtest.Options{Clients: []authtest.Client{mine}}, Options{Client: Client{ID: mine.ID, Secret: mine.Secret}})
	s.mustPost(s.Transport)
	if err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := s.record(s.Transport)
	if r.Issuer != s.as.Issuer || r.Registration.ClientSecret != "" || r.AccessToken != "" || r.RefreshToken != "" || r.Metadata != nil {
		t.Errorf("%+v", r)
	}
	s.mustPost(s.Transport)
}
