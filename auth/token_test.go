package auth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// Requests that need a token at the same time share one login, and one refresh.
func TestConcurrentRequestsShareTokens(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	all := func() {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if status, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); err != nil || status != http.StatusOK {
					t.Errorf("status %d, %v", status, err)
				}
			})
		}
		wg.Wait()
	}
	all()
	s.wantCounts(map[string]int{"register": 1, "authorize": 1, "refresh_token": 0})
	s.as.Advance(2 * time.Hour)
	all()
	s.wantCounts(map[string]int{"authorize": 1, "refresh_token": 1})
	if got := s.as.Requests("refresh_token")[0].Form; got.Get("resource") != s.rs.URL || got.Has("scope") {
		t.Errorf("refresh: %v", got)
	}
}

// Transports that share a store refresh once: the later one adopts the new token.
func TestTransportsShareAStore(t *testing.T) {
	t.Parallel()
	store := NewStore()
	s := newSetup(t, nil, Options{Store: store})
	s.mustPost(s.Transport)
	second := s.newTransport(Options{Store: store})
	s.mustPost(second)
	s.as.Advance(2 * time.Hour)
	var wg sync.WaitGroup
	for _, tr := range []*Transport{s.Transport, second, s.newTransport(Options{Store: store})} {
		wg.Go(func() { s.mustPost(tr) })
	}
	wg.Wait()
	s.wantCounts(map[string]int{"refresh_token": 1, "authorize": 1})
}

// A token that has expired while the program did not run is refreshed without a login and without a
// refused request.
func TestExpiredTokenAtStart(t *testing.T) {
	t.Parallel()
	store := NewStore()
	s := newSetup(t, nil, Options{Store: store})
	s.mustPost(s.Transport)
	for _, left := range []time.Duration{-time.Hour, 10 * time.Second} {
		s.setRecord(s.Transport, func(r *Record) { r.ObtainedAt, r.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(left) })
		before := len(s.rs.Headers())
		s.mustPost(s.newTransport(Options{Store: store}))
		if n := len(s.rs.Headers()) - before; n != 1 {
			t.Errorf("%v left: %d requests at the server, want 1", left, n)
		}
	}
	s.wantCounts(map[string]int{"refresh_token": 2, "authorize": 1})
}

// The answer to a refresh is stored although the request that needed it was cancelled.
func TestCancelledRequestKeepsTheRefresh(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	store := NewStore()
	s := newSetup(t, &authtest.Options{OnRequest: func(endpoint string, _ http.ResponseWriter, _ *http.Request) bool {
		if endpoint == "refresh_token" {
			close(begun)
			<-goOn
		}
		return false
	}}, Options{Store: store})
	s.mustPost(s.Transport)
	before := s.record(s.Transport)
	s.as.Advance(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := post(ctx, s.Transport, s.rs.URL, "{}"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	close(goOn)
	s.mustPost(s.newTransport(Options{Store: store}))
	if r := s.record(s.Transport); r.RefreshToken == before.RefreshToken || r.AccessToken == before.AccessToken {
		t.Error("the new tokens were not stored")
	}
	s.wantCounts(map[string]int{"refresh_token": 1})
}

func TestRefusedRefresh(t *testing.T) {
	t.Parallel()
	answer := func(status int, media, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, tt := range []struct {
		name             string
		answer           func(http.ResponseWriter)
		keepsTokens      bool
		keepsRegistation bool
	}{
		{"invalid_grant", answer(400, "application/json", `{"error":"invalid_grant"}`), false, true},
		{"invalid_client", answer(401, "application/json", `{"error":"invalid_client"}`), false, false},
		{"server error", answer(500, "text/html", `<html>oops`), true, true},
		{"rate", answer(429, "application/json", `{"error":"slow_down"}`), true, true},
		{"page", answer(200, "text/html", `<html>maintenance`), true, true},
		{"no token", answer(200, "application/json", `{}`), true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := NewStore()
			s := newSetup(t, &authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
				if endpoint == "refresh_token" {
					tt.answer(w)
				}
				return endpoint == "refresh_token"
			}}, Options{Store: store})
			s.mustPost(s.Transport)
			s.as.Advance(2 * time.Hour)
			_, err := post(t.Context(), s.newTransport(Options{Store: store}), s.rs.URL, "{}")
			var needs *NeedsLogin
			if errors.As(err, &needs) == tt.keepsTokens || err == nil || needs != nil && !strings.Contains(err.Error(), tt.name) {
				t.Errorf("%v", err)
			}
			r := s.record(s.Transport)
			if (r.RefreshToken != "") != tt.keepsTokens || (r.Registration.ClientID != "") != tt.keepsRegistation {
				t.Errorf("the record is now %+v", r)
			}
			s.wantCounts(map[string]int{"refresh_token": 1, "authorize": 1})
		})
	}
}

// A refresh token that was used twice costs one login, and no loop.
func TestRevokedFamily(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	s.as.Revoke(true, false)
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"authorize": 2, "refresh_token": 1, "register": 1})
}

// A server that refuses each token is not asked forever.
func TestServerRefusesEveryToken(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	login := &testLogin{as: as}
	rs := as.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="not for me"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	tr, err := NewTransport(rs.URL, &Options{Login: login})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = post(t.Context(), tr, rs.URL, "{}")
		var needs *NeedsLogin
		if !errors.As(err, &needs) || !strings.Contains(err.Error(), "not for me") {
			t.Errorf("%v", err)
		}
	}
	if n := login.count.Load(); n > 2 {
		t.Errorf("%d logins for two requests", n)
	}
}

// With another authorization server, nothing of the first one is used.
func TestAuthorizationServerChanges(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	old := s.record(s.Transport)
	other := authtest.Start(t, nil)
	s.rs.SetServer(other)
	s.login.as = other
	s.mustPost(s.Transport)
	if n := other.Count("register"); n != 1 {
		t.Errorf("%d registrations at the new server", n)
	}
	for _, endpoint := range []string{"register", "authorize", "token", "refresh_token"} {
		for _, r := range other.Requests(endpoint) {
			sent := r.Form.Encode() + r.Header.Get("Authorization")
			for _, secret := range []string{old.AccessToken, old.RefreshToken, old.Registration.ClientID} {
				if strings.Contains(sent, secret) {
					t.Errorf("the new server got %q at %s", secret, endpoint)
				}
			}
		}
	}
	s.wantCounts(map[string]int{"refresh_token": 0})
}

// A configured client belongs to one authorization server.
func TestAuthorizationServerOfConfiguredClientChanges(t *testing.T) {
	t.Parallel()
	clients := []authtest.Client{{ID: "mine", Secret: "s3cret-canary"}}
	s := newSetup(t, &authtest.Options{Clients: clients}, Options{Client: Client{ID: "mine", Secret: "s3cret-canary"}})
	s.mustPost(s.Transport)
	other := authtest.Start(t, &authtest.Options{Clients: clients})
	s.rs.SetServer(other)
	_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
	var failed *DiscoveryError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), other.Issuer) {
		t.Errorf("%v", err)
	}
	if n := other.Count("token") + other.Count("authorize"); n != 0 {
		t.Errorf("%d requests at the other server", n)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	if err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantCounts(map[string]int{"revoke": 2})
	if r, err := s.opts.Store.Load(t.Context(), s.key); err != nil || r != nil {
		t.Errorf("record %v, %v", r, err)
	}
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"authorize": 2})
}

// A server may refuse to revoke signed tokens, which is no failure; every other refusal is one.
func TestLogoutWithoutRevocation(t *testing.T) {
	t.Parallel()
	for code, isFailure := range map[string]bool{"unsupported_token_type": false, "invalid_client": true} {
		s := newSetup(t, &authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
			if endpoint == "revoke" {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"`+code+`"}`)
			}
			return endpoint == "revoke"
		}}, Options{})
		s.mustPost(s.Transport)
		if err := s.Logout(t.Context()); (err != nil) != isFailure {
			t.Errorf("%s: %v", code, err)
		}
		if r, err := s.opts.Store.Load(t.Context(), s.key); err != nil || r != nil {
			t.Errorf("%s: record %v, %v", code, r, err)
		}
	}
}

// No error contains a secret.
func TestErrorsContainNoSecrets(t *testing.T) {
	t.Parallel()
	store := NewStore()
	s := newSetup(t, &authtest.Options{Clients: []authtest.Client{{ID: "mine", Secret: "secret-canary"}}},
		Options{Store: store, Client: Client{ID: "mine", Secret: "secret-canary"}})
	s.mustPost(s.Transport)
	r := s.record(s.Transport)
	s.as.Revoke(true, false)
	_, err := post(t.Context(), s.newTransport(Options{Store: store, Client: s.opts.Client}), s.rs.URL, "{}")
	if err == nil {
		t.Fatal("no error")
	}
	for _, secret := range []string{"secret-canary", r.AccessToken, r.RefreshToken} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %v", secret, err)
		}
	}
}

// A refresh stays the same login; a login of the user is another one.
func TestLoginID(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	if id := s.LoginID(); id != "" {
		t.Errorf("without a login: %q", id)
	}
	s.mustPost(s.Transport)
	first := s.LoginID()
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.Transport)
	if id := s.LoginID(); id != first || id == "" || s.as.Count("refresh_token") != 1 {
		t.Errorf("%q after a refresh, %q before", id, first)
	}
	if err := s.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.LoginID() == first {
		t.Error("a second login has the same id")
	}
}
