package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// A login without a refresh token works until its access token expires, and then leads to another login.
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
