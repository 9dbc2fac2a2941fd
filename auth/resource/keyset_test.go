package resource

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/go-jose/go-jose/v4"
)

// TestKeyRotation checks how often the keys of an issuer are read.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, nil)
	expect := func(what, token string, status, fetches int) {
		t.Helper()
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+token)); resp.StatusCode != status {
			t.Errorf("%s: status %d, want %d", what, resp.StatusCode, status)
		}
		if n := as.Count("jwks"); n != fetches {
			t.Errorf("%s: the keys were read %d times, want %d", what, n, fetches)
		}
	}
	if n := as.Count("metadata"); n != 0 {
		t.Errorf("New has read the metadata %d times", n)
	}
	expect("first token", as.Sign(nil, goodClaims(as)), 200, 1)
	expect("second token", as.Sign(nil, goodClaims(as)), 200, 1)
	as.RotateKey()
	rotated := as.Sign(nil, goodClaims(as))
	expect("new key at once", rotated, 401, 1)
	as.Advance(31 * time.Second)
	var wg sync.WaitGroup
	for n := range 20 {
		token := as.Sign(map[string]any{"kid": fmt.Sprint(n)}, goodClaims(as))
		wg.Go(func() {
			if resp, _ := send(s, newPOST("/mcp", "Bearer "+token)); resp.StatusCode != 401 {
				t.Errorf("unknown key: status %d, want 401", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	expect("new key", rotated, 200, 2)
	if n := as.Count("metadata"); n != 1 {
		t.Errorf("the metadata was read %d times, want 1", n)
	}
}

// TestIssuerDown checks what happens while an issuer does not answer.
func TestIssuerDown(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	as := authtest.Start(t, &authtest.Options{OnRequest: func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
		return down.Load()
	}})
	s := newTestServer(t, as, nil)
	expect := func(what string, status int) {
		t.Helper()
		claims := goodClaims(as)
		resp, _ := send(s, newPOST("/mcp", "Bearer "+as.Sign(nil, claims)))
		if resp.StatusCode != status {
			t.Errorf("%s: status %d, want %d", what, resp.StatusCode, status)
		}
		if status == 503 && (resp.Header.Get("Retry-After") == "" || resp.Header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: the header is %v, want Retry-After and no challenge", what, resp.Header)
		}
	}
	down.Store(true)
	expect("down at the start", 503)
	requests := as.Count("metadata")
	expect("down again at once", 503)
	if n := as.Count("metadata"); n != requests {
		t.Errorf("a second failure within %v asked %d times more", retryAfter, n-requests)
	}
	down.Store(false)
	as.Advance(6 * time.Second)
	expect("up", 200)
	down.Store(true)
	as.Advance(time.Hour)
	expect("down for an hour", 200)
	as.Advance(25 * time.Hour)
	expect("down for a day", 503)
}

// TestStaleKeys checks that stale keys are read again in the background.
func TestStaleKeys(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, nil)
	if _, err := s.findToken(t.Context(), "", as.Sign(nil, goodClaims(as))); err != nil {
		t.Fatal(err)
	}
	as.Advance(minKeyLife + time.Second)
	if _, err := s.findToken(t.Context(), "", as.Sign(nil, goodClaims(as))); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for as.Count("jwks") < 2 {
		if time.Now().After(deadline) {
			t.Fatalf("the keys were read %d times, want 2", as.Count("jwks"))
		}
		waitBriefly(t.Context())
	}
}

func waitBriefly(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}

// TestIssuerMetadata checks the rules for the documents of an issuer.
func TestIssuerMetadata(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := json.Marshal(jose.JSONWebKey{Key: private.Public(), KeyID: "k"})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := json.Marshal(jose.JSONWebKey{Key: private, KeyID: "k"})
	if err != nil {
		t.Fatal(err)
	}
	symmetric := `{"kty":"oct","k":"` + base64.RawURLEncoding.EncodeToString(make([]byte, 32)) + `","kid":"k"}`
	for _, tt := range []struct {
		name   string
		issuer string // in the metadata; %s is the address
		keys   string
		want   string
	}{
		{"valid", "%s", `{"keys":[` + string(public) + `]}`, ""},
		{"unknown kinds of keys", "%s", `{"keys":[{"kty":"XYZ"},` + symmetric + `,` + string(public) + `]}`, ""},
		{"other issuer", "%s/", `{"keys":[` + string(public) + `]}`, "to the letter"},
		{"private key", "%s", `{"keys":[` + string(secret) + `]}`, "no such key"},
		{"symmetric key", "%s", `{"keys":[` + symmetric + `]}`, "no such key"},
		{"many keys", "%s", `{"keys":[` + strings.TrimSuffix(strings.Repeat(string(public)+",", maxKeys+1), ",") + `]}`, "has 101 keys"},
		{"large", "%s", `{"keys":[` + strings.Repeat(" ", maxDocument) + string(public) + `]}`, "more than"},
		{"no JSON", "%s", `<html>`, "no JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var issuer string
			mux := http.NewServeMux()
			mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, fmt.Sprintf(tt.issuer, issuer), issuer+"/jwks")
			})
			mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tt.keys) })
			as := httptest.NewServer(mux)
			t.Cleanup(as.Close)
			issuer = as.URL
			s, err := New(Options{URL: publicURL, Issuers: []Issuer{{URL: issuer}}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: "k"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":"ann","scope":"a","exp":%d}`, issuer, publicURL, time.Now().Add(time.Hour).Unix()))
			if err != nil {
				t.Fatal(err)
			}
			token, err := signed.CompactSerialize()
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.findToken(t.Context(), "", token)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestRedirectedKeys checks that the keys of an issuer are not read from an address that it
// redirects to.
func TestRedirectedKeys(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	elsewhere := httptest.NewServer(http.RedirectHandler(as.Issuer+"/jwks", http.StatusFound))
	t.Cleanup(elsewhere.Close)
	s := newTestServer(t, as, func(o *Options) { o.Issuers[0].KeySetURL = elsewhere.URL })
	if _, err := s.findToken(t.Context(), "", as.Sign(nil, goodClaims(as))); err == nil || !strings.Contains(err.Error(), "redirects to") {
		t.Errorf("got %v, want an error about the redirect", err)
	}
}
