package auth

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A token without a readable lifetime is used until the server refuses it, and is refreshed then.
func TestLifetimeOfTokens(t *testing.T) {
	t.Parallel()
	for _, quirk := range []string{"expires-string", "expires-absent"} {
		s := newSetup(t, &authtest.Options{Quirks: []string{quirk}}, Options{})
		s.mustPost(s.Transport)
		if r := s.record(s.Transport); (quirk == "expires-string") != (time.Until(r.ExpiresAt) > 50*time.Minute) {
			t.Errorf("%s: the token expires at %v", quirk, r.ExpiresAt)
		}
		s.as.Advance(2 * time.Hour)
		s.mustPost(s.Transport)
		s.wantCounts(map[string]int{"authorize": 1, "refresh_token": 1})
	}
}

// A client with an expired secret registers again, and the user logs in again.
func TestExpiredClientSecret(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"registration-expires", "registration-secret", "no-documents"}}, Options{})
	s.mustPost(s.Transport)
	r := s.record(s.Transport)
	if left := time.Until(r.Registration.Expires); left < 50*time.Minute || left > 70*time.Minute {
		t.Fatalf("the secret expires in %v", left)
	}
	s.setRecord(s.Transport, func(r *Record) { r.Registration.Expires = time.Now().Add(-time.Minute); r.ExpiresAt = time.Now() })
	if err := s.newTransport(s.opts).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantCounts(map[string]int{"register": 2, "authorize": 2})
}

// A server that has forgotten the client shows an error page instead of a redirect. That login
// fails, and the next one registers the client again.
func TestForgottenClientWithPages(t *testing.T) {
	t.Parallel()
	for _, quirk := range []string{"lost-client-page", "lost-client-html"} {
		s := newSetup(t, &authtest.Options{Quirks: []string{quirk, "no-documents"}}, Options{})
		s.mustPost(s.Transport)
		s.as.Revoke(false, true)
		var needs *NeedsLogin
		if err := s.Login(t.Context()); !errors.As(err, &needs) {
			t.Fatalf("%s: %v", quirk, err)
		}
		if err := s.Login(t.Context()); err != nil {
			t.Fatalf("%s: %v", quirk, err)
		}
		s.wantCounts(map[string]int{"register": 2})
	}
}

// A token endpoint that answers with an error page may work later, so a failed refresh keeps the
// tokens. A new login registers the client again.
func TestForgottenClientAtTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"lost-client-html", "no-documents"}}, Options{})
	s.mustPost(s.Transport)
	s.as.Revoke(false, true)
	s.as.Advance(2 * time.Hour)
	if _, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); err == nil {
		t.Fatal("no error although the client is forgotten")
	}
	if r := s.record(s.Transport); r.RefreshToken == "" {
		t.Error("the refresh token was dropped")
	}
	s.wantCounts(map[string]int{"authorize": 1, "register": 1})
	_ = s.Login(t.Context()) // the page of the server says that the client is unknown
	if err := s.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"register": 2})
}

// An OAuth error from the token endpoint counts as an error even if its status is 200.
func TestRefusalWithStatus200(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"ok-false"}}, Options{})
	s.mustPost(s.Transport)
	s.setRecord(s.Transport, func(r *Record) { r.RefreshToken = "unknown" })
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.newTransport(s.opts))
	s.wantCounts(map[string]int{"refresh_token": 1, "authorize": 2})
}

// A logout deletes the client's registration if the server gave an address for it. An address on
// another host is ignored, because the request contains a secret.
func TestLogoutDeletesTheRegistration(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"registration-managed", "no-documents"}}, Options{})
	s.mustPost(s.Transport)
	id := s.record(s.Transport).Registration.ClientID
	if err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, known := s.as.Client(id); known {
		t.Error("the client is still registered")
	}
	s.wantCounts(map[string]int{"registered": 1, "revoke": 2})
	other := authtest.Start(t, nil)
	s.mustPost(s.Transport)
	s.setRecord(s.Transport, func(r *Record) { r.Registration.ManagementURI = other.URL + "/registered/x" })
	if err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := other.Count("registered"); n != 0 {
		t.Errorf("the secret went to another host %d times", n)
	}
	refusing := newSetup(t, &authtest.Options{Quirks: []string{"registration-managed", "no-documents"}, OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
		if endpoint == "registered" {
			w.WriteHeader(http.StatusForbidden)
		}
		return endpoint == "registered"
	}}, Options{})
	refusing.mustPost(refusing.Transport)
	if err := refusing.Logout(t.Context()); err == nil {
		t.Error("a refused deletion is not reported")
	}
}

// If the clock of the authorization server is ten minutes wrong, the user logs in only once, and
// the token is not refreshed at each request.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		s := newSetup(t, nil, Options{})
		s.as.Advance(wrong)
		s.mustPost(s.Transport)
		s.as.Advance(55 * time.Minute)
		s.mustPost(s.Transport)
		s.as.Advance(time.Hour)
		s.mustPost(s.Transport)
		s.wantCounts(map[string]int{"authorize": 1})
		if n := s.as.Count("refresh_token"); n < 1 || n > 2 {
			t.Errorf("%v: %d refreshes", wrong, n)
		}
	}
}

// A server that wants a token only for calls of tools, and then names metadata of the tool, is used
// with its own metadata: the metadata of a tool names another resource, so its tokens would not be
// for the server (tolerance tool-metadata).
func TestChallengePerTool(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"challenge-per-tool"}}, Options{}, "use")
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"token": 0})
	s.mustSend(s.Transport, toolCall)
	s.mustSend(s.Transport, `{"method":"tools/call","params":{"name":"other"}}`)
	s.wantCounts(map[string]int{"authorize": 1, "token": 1})
	if got := s.as.Requests("authorization_code")[0].Form.Get("resource"); got != s.rs.URL {
		t.Errorf("the token is for %s, want %s", got, s.rs.URL)
	}

	s = newSetup(t, &authtest.Options{Quirks: []string{"challenge-per-tool"}}, Options{}, "use")
	if err := s.Login(t.Context()); err != nil {
		t.Errorf("a login before the first call: %v", err)
	}

	s = newSetup(t, &authtest.Options{Quirks: []string{"challenge-per-tool", "resource-elsewhere"}}, Options{}, "use")
	_, err := post(t.Context(), s.Transport, s.rs.URL, toolCall)
	failed, ok := errors.AsType[*DiscoveryError](err)
	if !ok || failed.Setting != "Resource" || len(failed.tried) < 2 || !strings.HasSuffix(failed.tried[0].URL, "/search") || failed.tried[0].Problem == "" {
		t.Errorf("without metadata of the server: %+v", err)
	}
}
