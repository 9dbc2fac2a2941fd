package auth

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

func TestLoginByCode(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{}, "notes:read")
	s.mustPost(s.Transport)
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"register": 1, "authorize": 1, "authorization_code": 1, "refresh_token": 0})

	q := s.as.Requests("authorize")[0].Form
	token := s.as.Requests("authorization_code")[0].Form
	for name, want := range map[string]string{
		"response_type": "code", "code_challenge_method": "S256", "resource": s.rs.URL, "scope": "notes:read", "redirect_uri": testRedirect,
	} {
		if q.Get(name) != want {
			t.Errorf("authorization request: %s is %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) < 22 || len(token.Get("code_verifier")) < 43 {
		t.Errorf("state %q, verifier %q", q.Get("state"), token.Get("code_verifier"))
	}
	if token.Get("resource") != s.rs.URL || token.Get("redirect_uri") != testRedirect || token.Get("client_id") == "" {
		t.Errorf("token request: %v", token)
	}
	if accept := s.as.Requests("authorization_code")[0].Header.Get("Accept"); accept != "application/json" {
		t.Errorf("Accept %q", accept)
	}
	client, _ := s.as.Client(q.Get("client_id"))
	if client.Registration["application_type"] != "native" {
		t.Errorf("registration %v", client.Registration)
	}
}

func TestRegistrationOrder(t *testing.T) {
	t.Parallel()
	const document = "https://dowel.example/client.json"
	for _, tt := range []struct {
		name       string
		quirks     []string
		client     Client
		id         string // wanted; empty for a dynamic one
		registered int
	}{
		{"pre-registered before all", nil, Client{ID: "mine", DocumentURL: document}, "mine", 0},
		{"document before registration", nil, Client{DocumentURL: document}, document, 0},
		{"registration where documents are unknown", []string{"no-documents"}, Client{DocumentURL: document}, "", 1},
		{"registration", nil, Client{}, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, &authtest.Options{Quirks: tt.quirks, Clients: []authtest.Client{{ID: "mine"}}}, Options{Client: tt.client})
			s.as.PublishDocument(document, map[string]any{
				"client_id": document, "client_name": "dowel", "redirect_uris": documentRedirectURIs(""), "token_endpoint_auth_method": "none",
			})
			s.mustPost(s.Transport)
			if id := s.as.Requests("authorize")[0].Form.Get("client_id"); tt.id != "" && id != tt.id || tt.id == "" && (id == document || id == "mine") {
				t.Errorf("client id %q", id)
			}
			s.wantCounts(map[string]int{"register": tt.registered})
		})
	}
}

// Without any way to register, the error tells the user what to create.
func TestNoRegistrationIsExplained(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"no-registration", "no-documents"}}, Options{})
	_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
	var needs *NeedsLogin
	if !errors.As(err, &needs) || !strings.Contains(needs.Reason, testRedirect) {
		t.Fatalf("%v", err)
	}
}

// A configured client is never registered, even if the authorization server does not know it.
func TestConfiguredClientIsNeverRegistered(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{Client: Client{ID: "unknown"}})
	if _, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); err == nil {
		t.Fatal("no error")
	}
	s.wantCounts(map[string]int{"register": 0})
}

func TestRedirectIsChecked(t *testing.T) {
	t.Parallel()
	const canary = "error-text-of-another-server"
	for _, tt := range []struct {
		name   string
		quirks []string
		change func(url.Values)
		ok     bool
		want   string // in the error
	}{
		{"advertised and right", nil, nil, true, ""},
		{"advertised and missing", []string{"iss-missing"}, nil, false, "iss"},
		{"unadvertised and right", []string{"iss-unadvertised"}, nil, true, ""},
		{"neither advertised nor sent", []string{"iss-none"}, nil, true, ""},
		{"wrong", []string{"iss-wrong"}, nil, false, "iss"},
		{"slash added", []string{"iss-slash"}, nil, false, "iss"},
		{"error with a wrong iss", []string{"iss-wrong"}, func(q url.Values) { q.Del("code"); q.Set("error", canary) }, false, "iss"},
		{"wrong state", nil, func(q url.Values) { q.Set("state", "other") }, false, "state"},
		{"no state", nil, func(q url.Values) { q.Del("state") }, false, "state"},
		{"no code", nil, func(q url.Values) { q.Del("code") }, false, "no code"},
		{"refused by the user", []string{"deny"}, nil, false, "the login was refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, &authtest.Options{Quirks: tt.quirks}, Options{})
			s.login.change = tt.change
			status, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
			if tt.ok {
				if err != nil || status != http.StatusOK {
					t.Errorf("status %d, %v", status, err)
				}
				return
			}
			var needs *NeedsLogin
			if !errors.As(err, &needs) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("%v", err)
			}
			s.wantCounts(map[string]int{"token": 0, "authorize": 1})
		})
	}
}

// An authorization server without PKCE in its metadata is used only if Server.AssumePKCE is set.
func TestServerWithoutPKCE(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"no-challenge-methods"}}, Options{})
	_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
	var failed *DiscoveryError
	if !errors.As(err, &failed) || !strings.Contains(failed.Reason, "PKCE") || s.login.urls != nil {
		t.Fatalf("%v, opened %q", err, s.login.urls)
	}
	s.mustPost(s.newTransport(Options{Login: s.login, Server: Server{AssumePKCE: true}}))
	if q := s.as.Requests("authorize")[0].Form; q.Get("code_challenge_method") != "S256" {
		t.Errorf("%v", q)
	}
}

// An authorization endpoint with the scheme javascript is never opened.
func TestScriptIsNoAuthorizationEndpoint(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"script-endpoint"}}, Options{})
	if _, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); err == nil || s.login.urls != nil {
		t.Errorf("%v; opened %q", err, s.login.urls)
	}
}

// Without Options.Login, a request that needs a login fails with NeedsLogin.
func TestNoUser(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	_, err := post(t.Context(), s.newTransport(Options{}), s.rs.URL, "{}")
	var needs *NeedsLogin
	if !errors.As(err, &needs) || needs.Server != s.rs.URL {
		t.Errorf("%v", err)
	}
	s.wantCounts(map[string]int{"register": 0, "authorize": 0})
}

// A request that has an Authorization field of its own starts no login.
func TestOwnAuthorizationField(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.rs.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer of-the-user")
	resp, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || s.login.count.Load() != 0 {
		t.Errorf("status %d, %d logins", resp.StatusCode, s.login.count.Load())
	}
	s.wantCounts(map[string]int{"metadata": 0})
}

// The token is not sent to another origin.
func TestOtherOriginGetsNoToken(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	other := s.as.Protect(t, okHandler)
	if status, err := post(t.Context(), s.Transport, other.URL, "{}"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("status %d, %v", status, err)
	}
	for _, h := range other.Headers() {
		if h.Get("Authorization") != "" {
			t.Errorf("the other origin got %v", h)
		}
	}
}

// A login requests offline_access if the server lists it. If the server refuses the scope, the next
// attempt omits it.
func TestOfflineAccess(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Scopes: []string{"notes", "offline_access"}}, Options{}, "notes")
	s.mustPost(s.Transport)
	if q := s.as.Requests("authorize")[0].Form; q.Get("scope") != "notes offline_access" || q.Get("prompt") != "consent" {
		t.Errorf("%v", q)
	}
	refusing := newSetup(t, &authtest.Options{Scopes: []string{"notes", "offline_access"}, Quirks: []string{"offline-refused"}}, Options{}, "notes")
	refusing.mustPost(refusing.Transport)
	refusing.wantCounts(map[string]int{"authorize": 2, "register": 1})
}

// A dynamically registered client is used again until a login has another redirect URI.
func TestRegistrationIsKept(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	if err := s.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantCounts(map[string]int{"register": 1, "authorize": 2})
	s.login.redirect = "http://127.0.0.1:13317/callback"
	if err := s.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantCounts(map[string]int{"register": 2, "authorize": 3})
	client, _ := s.as.Client(s.as.Requests("authorize")[2].Form.Get("client_id"))
	if got := fmt.Sprint(client.Registration["redirect_uris"]); got != "["+s.login.redirect+"]" {
		t.Errorf("the redirect URIs of the registration are %s", got)
	}
}

// A server that has forgotten the client shows a page and does not redirect. The next login
// registers the client again.
func TestForgottenClient(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	s.as.Revoke(false, true)
	var needs *NeedsLogin
	if err := s.Login(t.Context()); !errors.As(err, &needs) {
		t.Fatalf("%v", err)
	}
	if err := s.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantCounts(map[string]int{"register": 2, "authorize": 3})
}

// If the user gives up a login, the next login uses the same registration.
func TestGivenUpLoginKeepsTheRegistration(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.login.change = func(q url.Values) { q.Del("code") }
	if _, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); err == nil {
		t.Fatal("no error")
	}
	s.login.change = nil
	if err := s.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantCounts(map[string]int{"register": 1, "authorize": 2})
}

// After the user has refused a login, requests fail without asking again, until Login is called or
// the record changes.
func TestRefusedLoginIsRemembered(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"deny"}}, Options{})
	wantLogins := func(n int32) {
		t.Helper()
		for range 2 {
			_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
			var needs *NeedsLogin
			if !errors.As(err, &needs) || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%v", err)
			}
		}
		if got := s.login.count.Load(); got != n {
			t.Errorf("%d logins, want %d", got, n)
		}
	}
	wantLogins(1)
	if err := s.Login(t.Context()); err == nil {
		t.Error("no error")
	}
	wantLogins(2) // Login has asked
	s.setRecord(s.Transport, func(*Record) {})
	wantLogins(3)
}

// A login that fails returns an error even if another process has refreshed the old token
// meanwhile.
func TestRefreshElsewhereIsNoLogin(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	s.login.change = func(q url.Values) {
		q.Del("code")
		s.setRecord(s.Transport, func(r *Record) { r.AccessToken = "refreshed" })
	}
	if err := s.Login(t.Context()); err == nil {
		t.Error("no error")
	}
}

// If the server requires pushed authorization requests (RFC 9126), the parameters are posted to it,
// and the URL for the browser contains only a reference to them.
func TestPushedParameters(t *testing.T) {
	t.Parallel()
	var pushed url.Values
	as := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.PostForm.Get("client_id") == "refused" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_request"}`)
			return
		}
		pushed = r.PostForm
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"request_uri":"urn:ietf:params:oauth:request_uri:1","expires_in":60}`)
	}))
	defer as.Close()
	tr, err := NewTransport("https://a.example/mcp", &Options{Server: Server{AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	f := &codeFlow{
		t: tr, redirectURI: testRedirect, state: "s", verifier: "v", scopes: []string{"notes"},
		record: &Record{Registration: Registration{ClientID: "mine", AuthMethod: methodNone}},
		d: &discovery{resource: "https://a.example/mcp", server: &oauth.ServerMetadata{
			AuthorizationEndpoint: as.URL + "/authorize?tenant=1", PushedAuthorizationEndpoint: as.URL + "/par", RequirePushedAuthorization: true,
		}},
	}
	got, err := f.authorizationURL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := as.URL + "/authorize?client_id=mine&request_uri=urn%3Aietf%3Aparams%3Aoauth%3Arequest_uri%3A1&tenant=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if pushed.Get("state") != "s" || pushed.Get("code_challenge") == "" || pushed.Get("resource") == "" || pushed.Get("scope") != "notes" {
		t.Errorf("pushed %v", pushed)
	}
	f.record.Registration.ClientID = "refused"
	if _, err := f.authorizationURL(t.Context()); !refusedAs(err, "invalid_request") {
		t.Errorf("%v", err)
	}
}
