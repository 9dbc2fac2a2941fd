package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Clients: []authtest.Client{{ID: "robot", Secret: "odd:/+ secret"}}},
		Options{ClientCredentials: true, Client: Client{ID: "robot", Secret: "odd:/+ secret"}}, "notes")
	s.mustPost(s.Transport)
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.Transport)
	s.wantCounts(map[string]int{"client_credentials": 2, "authorize": 0, "register": 0})
	if form := s.as.Requests("client_credentials")[0].Form; form.Get("resource") != s.rs.URL || form.Get("scope") != "notes" || form.Has("client_secret") {
		t.Errorf("%v", form)
	}
}

func TestSignedClientAssertion(t *testing.T) {
	t.Parallel()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for algorithm, key := range map[jose.SignatureAlgorithm]crypto.Signer{jose.ES256: ec, jose.RS256: rs, jose.EdDSA: ed} {
		c := Client{ID: "robot", Key: key, KeyID: "k1"}
		text, err := c.signAssertion("robot", "https://as.example", now)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{algorithm})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := signed.Verify(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		var claims map[string]any
		if err := json.Unmarshal(raw, &claims); err != nil {
			t.Fatal(err)
		}
		if claims["iss"] != "robot" || claims["sub"] != "robot" || claims["aud"] != "https://as.example" || claims["jti"] == "" ||
			claims["exp"].(float64) > float64(now.Add(10*time.Minute).Unix()) || signed.Signatures[0].Header.KeyID != "k1" {
			t.Errorf("%s: %v, header %v", algorithm, claims, signed.Signatures[0].Header)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	assert := func(context.Context, AssertionRequest) (string, error) { return "", nil }
	for want, o := range map[string]Options{
		"without Client.ID": {Client: Client{Secret: "s"}},
		"Client.Key is set": {Client: Client{Key: key}},
		"needs Client.ID":   {ClientCredentials: true, Client: Client{ID: "x"}},
		"either":            {ClientCredentials: true, Assertion: assert, Client: Client{ID: "x", Secret: "s"}},
		"want an https URL": {Client: Client{DocumentURL: "https://a.example"}},
	} {
		if _, err := NewTransport("https://a.example/mcp", &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := NewTransport("a.example", nil); err == nil {
		t.Error("a server without a scheme is accepted")
	}
}

// A refused assertion is neither sent again nor replaced by another way to log in.
func TestRefusedAssertion(t *testing.T) {
	t.Parallel()
	made := 0
	s := newSetup(t, nil, Options{Assertion: func(_ context.Context, r AssertionRequest) (string, error) {
		made++
		return "assertion for " + r.Issuer, nil
	}})
	_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
	var refused *TokenError
	if !errors.As(err, &refused) || refused.Code != "invalid_client" || strings.Contains(err.Error(), "assertion for") {
		t.Errorf("%v", err)
	}
	if n := s.as.Count("token"); n != 1 || made != 1 {
		t.Errorf("%d requests, %d assertions", n, made)
	}
	form := s.as.Requests("token")[0].Form
	if form.Get("assertion") != "assertion for "+s.as.Issuer || form.Get("resource") != s.rs.URL {
		t.Errorf("%v", form)
	}
}

func TestEnterprise(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var form url.Values
	answer := `{"issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","access_token":"jag","token_type":"N_A"}`
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = r.ParseForm()
		form = r.PostForm
		_, _ = w.Write([]byte(answer))
	}))
	defer idp.Close()
	e := &Enterprise{TokenURL: idp.URL, ClientID: "at-idp", IDToken: func(context.Context) (string, error) { return "id-token", nil }}
	request := AssertionRequest{Issuer: "https://as.example", Resource: "https://a.example/mcp", Scopes: []string{"a", "b"}}
	got, err := e.Assert(t.Context(), request)
	if err != nil || got != "jag" {
		t.Fatalf("%q, %v", got, err)
	}
	for name, want := range map[string]string{
		"grant_type": grantExchange, "requested_token_type": tokenTypeIDJAG, "subject_token": "id-token", "subject_token_type": tokenTypeID,
		"audience": "https://as.example", "resource": "https://a.example/mcp", "scope": "a b", "client_id": "at-idp",
	} {
		if form.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, form.Get(name), want)
		}
	}
	answer = `{"access_token":"plain","token_type":"Bearer"}`
	if got, err := e.Assert(t.Context(), request); err == nil {
		t.Errorf("a token of another type was taken: %q", got)
	}
}

// dpopServer is an MCP server with an authorization server that binds tokens to keys. Both ask for
// a nonce.
type dpopServer struct {
	t         *testing.T
	challenge string // scheme of the server's challenge
	web       *httptest.Server
	mu        sync.Mutex
	ids       map[string]bool
	proofs    int
	plain     int // token requests without a proof
}

func newDPoPServer(t *testing.T, challenge string) *dpopServer {
	s := &dpopServer{t: t, challenge: challenge, ids: map[string]bool{}}
	s.web = httptest.NewServer(s)
	t.Cleanup(s.web.Close)
	return s
}

func (s *dpopServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.web.URL
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": at + "/mcp", "authorization_servers": []string{at}})
	case "/.well-known/oauth-authorization-server":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": at, "token_endpoint": at + "/token", "dpop_signing_alg_values_supported": []string{"ES256"},
		})
	case "/token":
		s.serveToken(w, r)
	case "/mcp":
		s.serveMCP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// check verifies a proof and that its id is new.
func (s *dpopServer) check(r *http.Request, token, nonce string) bool {
	claims := oauth.ProofClaims{Method: r.Method, URL: s.web.URL + r.URL.Path, Token: token}
	p, err := oauth.VerifyProof(r.Header["Dpop"], claims, []jose.SignatureAlgorithm{jose.ES256}, time.Now(), time.Minute)
	if err != nil {
		s.t.Error(err)
		return false
	}
	if s.ids[p.ID] {
		s.t.Errorf("the id %s was used twice", p.ID)
	}
	s.ids[p.ID] = true
	s.proofs++
	return p.Nonce == nonce
}

func (s *dpopServer) serveToken(w http.ResponseWriter, r *http.Request) {
	kind := "Bearer"
	if r.Header.Get("DPoP") == "" {
		s.plain++
	} else {
		if kind = "DPoP"; !s.check(r, "", "nonce") {
			w.Header().Set("DPoP-Nonce", "nonce")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"use_dpop_nonce"}`))
			return
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "token-of-" + kind, "token_type": kind, "expires_in": 3600})
}

func (s *dpopServer) serveMCP(w http.ResponseWriter, r *http.Request) {
	switch authorization := r.Header.Get("Authorization"); {
	case authorization == "":
		w.Header().Set("WWW-Authenticate", s.challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case authorization == "DPoP token-of-DPoP" && !s.check(r, "token-of-DPoP", "other"):
		w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		w.Header().Set("DPoP-Nonce", "other")
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// Tokens are bound to a key if the MCP server or the options want it. The metadata of the
// authorization server alone is not enough: it may serve others too.
func TestDPoP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		challenge string
		option    bool
		want      bool
	}{
		{"challenge", "DPoP", false, true},
		{"options", "Bearer", true, true},
		{"authorization server alone", "Bearer", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newDPoPServer(t, tt.challenge)
			tr, err := NewTransport(s.web.URL+"/mcp", &Options{DPoP: tt.option, ClientCredentials: true, Client: Client{ID: "robot", Secret: "s"}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if status, err := post(t.Context(), tr, s.web.URL+"/mcp?x=1", "{}"); err != nil || status != http.StatusOK {
					t.Fatalf("status %d, %v", status, err)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := s.plain == 0; got != tt.want || tt.want && s.proofs != 5 {
				t.Errorf("%d proofs, %d token requests without one", s.proofs, s.plain)
			}
		})
	}
}

// The document names the URL as the client's id, and the redirect URIs that the client uses.
func TestClientDocument(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := Client{DocumentURL: "https://dowel.example/client.json", Name: "Notes", Key: key, KeyID: "k1"}
	raw, err := ClientDocument(c)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		ID        string             `json:"client_id"`
		Name      string             `json:"client_name"`
		Redirects []string           `json:"redirect_uris"`
		Method    string             `json:"token_endpoint_auth_method"`
		Keys      jose.JSONWebKeySet `json:"jwks"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	if document.ID != c.DocumentURL || document.Name != "Notes" || document.Method != methodKey || len(document.Redirects) != 2+2*10 ||
		len(document.Keys.Keys) != 1 {
		t.Errorf("%+v", document)
	}
	if strings.Contains(string(raw), `"d":`) {
		t.Error("the document contains the private key")
	}
	if _, err := ClientDocument(Client{DocumentURL: "http://dowel.example/client.json"}); err == nil {
		t.Error("a URL of http is accepted")
	}
}
