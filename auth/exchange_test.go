package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// newExchange returns a Transport that exchanges the token of ann. change may change the options.
func newExchange(t *testing.T, server *authtest.Options, change func(*Options)) *setup {
	t.Helper()
	server.Clients = []authtest.Client{{ID: "gateway", Secret: "s"}}
	s := newSetup(t, server, Options{}, "notes")
	o := Options{Client: Client{ID: "gateway", Secret: "s"}, Server: Server{Issuer: s.as.Issuer}, Subject: func(context.Context) (string, error) {
		return s.as.Sign(nil, map[string]any{"sub": "ann", "aud": "https://gateway.example", "exp": s.as.Now().Add(time.Hour).Unix()}), nil
	}}
	if change != nil {
		change(&o)
	}
	s.Transport = s.newTransport(o)
	return s
}

func TestExchange(t *testing.T) {
	t.Parallel()
	s := newExchange(t, &authtest.Options{}, nil)
	s.mustPost(s.Transport)
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.Transport) // the token has expired
	s.wantCounts(map[string]int{"token-exchange": 2, "authorize": 0, "register": 0, "refresh_token": 0})
	if form := s.as.Requests("token-exchange")[0].Form; form.Get("resource") != s.rs.URL || form.Get("scope") != "notes" || form.Get("subject_token_type") != tokenTypeAccess {
		t.Errorf("%v", form)
	}
	s.rs.SetServer(nil, "notes", "admin")
	s.mustPost(s.Transport) // by a step-up
	if all := s.as.Requests("token-exchange"); len(all) != 3 || all[2].Form.Get("scope") != "notes admin" {
		t.Errorf("%d exchanges, the last one %v", len(all), all[len(all)-1].Form)
	}
}

func TestExchangeOnBehalfOf(t *testing.T) {
	t.Parallel()
	s := newExchange(t, &authtest.Options{Quirks: []string{"resource-ignored"}}, func(o *Options) { o.OnBehalfOf = true })
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"jwt-bearer": 1, "token-exchange": 0})
	if form := s.as.Requests("jwt-bearer")[0].Form; form.Has("resource") || form.Get("requested_token_use") != "on_behalf_of" || form.Get("assertion") == "" {
		t.Errorf("%v", form)
	}
}

// The token of a user reaches the authorization server of the options only, whatever the MCP server
// names, and is never used at the MCP server.
func TestExchangeKeepsToken(t *testing.T) {
	t.Parallel()
	other := authtest.Start(t, nil)
	s := newExchange(t, &authtest.Options{}, nil)
	s.mustPost(s.Transport)
	s.rs.SetServer(other)
	if status, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); err == nil && status == http.StatusOK {
		t.Errorf("status %d at a server that trusts another authorization server", status)
	}
	if n := other.Count("token"); n != 0 {
		t.Errorf("%d token requests at the other server, want none", n)
	}
	const own = "the.users.token"
	echo := newExchange(t, &authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, r *http.Request) bool {
		if endpoint != "token-exchange" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "` + r.PostForm.Get("subject_token") + `", "token_type": "Bearer"}`))
		return true
	}}, func(o *Options) { o.Subject = func(context.Context) (string, error) { return own, nil } })
	if _, err := post(t.Context(), echo.Transport, echo.rs.URL, "{}"); err == nil || !strings.Contains(err.Error(), "returned it") || strings.Contains(err.Error(), own) {
		t.Errorf("an exchange that returns the same token: %v", err)
	}
	for _, h := range echo.rs.Headers() {
		if strings.Contains(h.Get("Authorization"), own) {
			t.Error("the MCP server has got the token of the user")
		}
	}
}

func TestExchangeRefused(t *testing.T) {
	t.Parallel()
	s := newExchange(t, &authtest.Options{}, func(o *Options) {
		o.Subject = func(context.Context) (string, error) { return "not.a.token", nil }
	})
	var refused *TokenError
	if _, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); !errors.As(err, &refused) || refused.Code != "invalid_grant" {
		t.Errorf("%v, want invalid_grant", err)
	}
	for _, o := range []Options{
		{Subject: func(context.Context) (string, error) { return "", nil }, Client: Client{ID: "x"}},
		{Subject: func(context.Context) (string, error) { return "", nil }, Server: Server{Issuer: "https://as.example"}},
	} {
		if _, err := NewTransport("https://mcp.example", &o); err == nil {
			t.Error("Subject without a client or an issuer is accepted")
		}
	}
}
