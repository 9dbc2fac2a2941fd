package authtest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// newProof returns the header of a request with a DPoP proof.
func newProof(t *testing.T, key *oauth.DPoPKey, method, target, token string) http.Header {
	t.Helper()
	proof, err := key.MakeProof(oauth.ProofClaims{Method: method, URL: target, Token: token}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{"Dpop": {proof}}
}

func newProofKey(t *testing.T) *oauth.DPoPKey {
	t.Helper()
	key, err := oauth.NewDPoPKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A token that is asked for with a proof works only with proofs of the same key, and so does the
// refresh token of a client without a secret.
func TestBoundTokens(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	p := f.s.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) }))
	f.resource, f.scope = p.URL, "openid"
	key, other := newProofKey(t), newProofKey(t)
	endpoint := f.s.URL + "/token"
	f.params = url.Values{"dpop_jkt": {key.Thumbprint()}}
	f.tokenHeaders = newProof(t, other, "POST", endpoint, "")
	if status, body := f.exchange(f.authorize().Get("code")); status != 400 || body["error"] != "invalid_dpop_proof" {
		t.Errorf("a code with the proof of another key: %d %v", status, body)
	}
	f.tokenHeaders = newProof(t, key, "GET", endpoint, "")
	if status, body := f.exchange(f.authorize().Get("code")); status != 400 || body["error"] != "invalid_dpop_proof" {
		t.Errorf("a proof for another method: %d %v", status, body)
	}
	f.tokenHeaders = newProof(t, key, "POST", endpoint, "")
	body := f.login()
	token := body["access_token"].(string)
	if jkt := verifyToken(t, f, token)["cnf"].(map[string]any)["jkt"]; jkt != key.Thumbprint() || body["token_type"] != "DPoP" {
		t.Errorf("token of type %v for the key %v, want DPoP for %s", body["token_type"], jkt, key.Thumbprint())
	}
	if claims := verifyIdentity(t, f, body["id_token"].(string)); claims["aud"] != f.id || claims["sub"] != "alice" {
		t.Errorf("the ID token has %v", claims)
	}
	for name, tt := range map[string]struct {
		scheme string
		proof  http.Header
		want   int
	}{
		"a proof":                {"DPoP", newProof(t, key, "GET", p.URL, token), 200},
		"no proof":               {"DPoP", http.Header{}, 401},
		"as a bearer token":      {"Bearer", newProof(t, key, "GET", p.URL, token), 401},
		"another key":            {"DPoP", newProof(t, other, "GET", p.URL, token), 401},
		"proof of another token": {"DPoP", newProof(t, key, "GET", p.URL, "x"), 401},
	} {
		tt.proof.Set("Authorization", tt.scheme+" "+token)
		if status, _ := f.send("GET", p.URL, nil, tt.proof); status != tt.want {
			t.Errorf("%s: status %d, want %d", name, status, tt.want)
		}
	}
	refresh := body["refresh_token"]
	f.tokenHeaders = nil
	if status, body := f.refreshWith(refresh); status != 400 || body["error"] != "invalid_dpop_proof" {
		t.Errorf("a refresh without a proof: %d %v", status, body)
	}
	f.tokenHeaders = newProof(t, key, "POST", endpoint, "")
	if status, body := f.refreshWith(refresh); status != 200 || body["token_type"] != "DPoP" {
		t.Errorf("a refresh: %d %v", status, body)
	}
}

// verifyIdentity checks the type of an ID token and returns its claims.
func verifyIdentity(t *testing.T, f *testFlow, token string) (claims map[string]any) {
	t.Helper()
	claims, ok := f.s.readOwn(token, "JWT")
	if !ok || !strings.HasPrefix(token, "ey") {
		t.Fatalf("%q is no ID token", token)
	}
	return claims
}
