package resource

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// bindToken returns a token that is bound to a key.
func bindToken(as *authtest.Server, key *oauth.DPoPKey) string {
	claims := goodClaims(as)
	claims["cnf"] = map[string]any{"jkt": key.Thumbprint()}
	return as.Sign(nil, claims)
}

func newKey(t *testing.T) *oauth.DPoPKey {
	t.Helper()
	key, err := oauth.NewDPoPKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func prove(t *testing.T, key *oauth.DPoPKey, c oauth.ProofClaims, now time.Time) string {
	t.Helper()
	proof, err := key.MakeProof(c, now)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func TestDPoP(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	key, other := newKey(t), newKey(t)
	token := bindToken(as, key)
	claims := oauth.ProofClaims{Method: "POST", URL: publicURL, Token: token}
	with := func(change func(*oauth.ProofClaims)) []string {
		c := claims
		change(&c)
		return []string{prove(t, key, c, as.Now())}
	}
	good := func() []string { return with(func(*oauth.ProofClaims) {}) }
	repeated := good()
	for _, tt := range []struct {
		name, target, authorization string
		proofs                      []string
		code                        string // of the challenge; empty if the request is served
		scheme                      string // of the first challenge
	}{
		{"valid", "/mcp", "DPoP " + token, good(), "", ""},
		{"with a query", "/mcp?a=b", "DPoP " + token, good(), "", ""},
		{"behind a proxy that changes the path", "/internal", "DPoP " + token, good(), "", ""},
		{"once", "/mcp", "DPoP " + token, repeated, "", ""},
		{"twice", "/mcp", "DPoP " + token, repeated, "invalid_dpop_proof", "DPoP"},
		{"as a bearer token", "/mcp", "Bearer " + token, good(), "invalid_token", "Bearer"},
		{"as a bearer token without a proof", "/mcp", "Bearer " + token, nil, "invalid_token", "Bearer"},
		{"a bearer token as bound", "/mcp", "DPoP " + as.IssueToken(publicURL), good(), "invalid_token", "Bearer"},
		{"no proof", "/mcp", "DPoP " + token, nil, "invalid_dpop_proof", "DPoP"},
		{"two proofs", "/mcp", "DPoP " + token, append(good(), good()...), "invalid_dpop_proof", "DPoP"},
		{"another key", "/mcp", "DPoP " + token, []string{prove(t, other, claims, as.Now())}, "invalid_dpop_proof", "DPoP"},
		{"another token", "/mcp", "DPoP " + token, with(func(c *oauth.ProofClaims) { c.Token = "x" }), "invalid_dpop_proof", "DPoP"},
		{"no token hash", "/mcp", "DPoP " + token, with(func(c *oauth.ProofClaims) { c.Token = "" }), "invalid_dpop_proof", "DPoP"},
		{"another method", "/mcp", "DPoP " + token, with(func(c *oauth.ProofClaims) { c.Method = "GET" }), "invalid_dpop_proof", "DPoP"},
		{"another server", "/mcp", "DPoP " + token, with(func(c *oauth.ProofClaims) { c.URL = "https://other.example/mcp" }), "invalid_dpop_proof", "DPoP"},
		{"another path", "/mcp/files", "DPoP " + token, good(), "invalid_dpop_proof", "DPoP"},
		{"old", "/mcp", "DPoP " + token, []string{prove(t, key, claims, as.Now().Add(-6*time.Minute))}, "invalid_dpop_proof", "DPoP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestServer(t, as, nil)
			if tt.name == "twice" {
				first := newPOST(tt.target, tt.authorization)
				first.Header[oauth.HeaderDPoP] = tt.proofs
				send(s, first)
			}
			r := newPOST(tt.target, tt.authorization)
			r.Header[oauth.HeaderDPoP] = tt.proofs
			resp, _ := send(s, r)
			challenges := oauth.ParseChallenges(resp.Header)
			if tt.code == "" {
				if resp.StatusCode != 200 {
					t.Errorf("status %d with %q, want 200", resp.StatusCode, resp.Header.Values("WWW-Authenticate"))
				}
				return
			}
			if resp.StatusCode != 401 || len(challenges) == 0 || challenges[0].Get("error") != tt.code || challenges[0].Scheme != tt.scheme {
				t.Errorf("status %d with %q, want 401 with %s error=%s", resp.StatusCode, resp.Header.Values("WWW-Authenticate"), tt.scheme, tt.code)
			}
		})
	}
}

// TestChallengeOfUsedScheme checks that a client with a bound token gets a challenge of its scheme.
func TestChallengeOfUsedScheme(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, nil)
	for scheme, want := range map[string][]string{"Bearer": {"Bearer"}, "DPoP": {"Bearer", "DPoP"}, "dpop": {"Bearer", "DPoP"}} {
		resp, _ := send(s, newPOST("/mcp", scheme+" expired"))
		var got []string
		for _, c := range oauth.ParseChallenges(resp.Header) {
			got = append(got, c.Scheme)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: challenges of %q, want %q", scheme, got, want)
		}
	}
}

func TestRequireDPoP(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, func(o *Options) { o.RequireDPoP = true })
	resp, _ := send(s, newPOST("/mcp", "Bearer "+as.IssueToken(publicURL)))
	if got := resp.Header.Values("WWW-Authenticate"); resp.StatusCode != 401 || len(got) != 1 || !strings.HasPrefix(got[0], `DPoP error="invalid_token"`) {
		t.Errorf("status %d with %q, want 401 with one challenge of DPoP", resp.StatusCode, got)
	}
	key := newKey(t)
	token := bindToken(as, key)
	r := newPOST("/mcp", "DPoP "+token)
	r.Header.Set("DPoP", prove(t, key, oauth.ProofClaims{Method: "POST", URL: publicURL, Token: token}, as.Now()))
	if resp, seen := send(s, r); resp.StatusCode != 200 || seen.Subject != "ann" {
		t.Errorf("status %d with the token %+v", resp.StatusCode, seen)
	}
}

// TestDPoPNonces checks that a nonce is asked for, that it is valid at every replica, and that it
// becomes invalid.
func TestDPoPNonces(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	keys := new(mcp.Keys)
	change := func(o *Options) { o.DPoPNonces, o.Keys = true, keys }
	replicas := []*Server{newTestServer(t, as, change), newTestServer(t, as, change)}
	key := newKey(t)
	token := bindToken(as, key)
	sendWith := func(s *Server, nonce string) *http.Response {
		r := newPOST("/mcp", "DPoP "+token)
		r.Header.Set("DPoP", prove(t, key, oauth.ProofClaims{Method: "POST", URL: publicURL, Token: token, Nonce: nonce}, as.Now()))
		resp, _ := send(s, r)
		return resp
	}
	resp := sendWith(replicas[0], "")
	nonce := resp.Header.Get("DPoP-Nonce")
	challenges := oauth.ParseChallenges(resp.Header)
	if resp.StatusCode != 401 || nonce == "" || len(challenges) != 1 || !challenges[0].Is("DPoP") || challenges[0].Get("error") != "use_dpop_nonce" {
		t.Fatalf("status %d with %v, want 401 with a nonce", resp.StatusCode, resp.Header)
	}
	if !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "DPoP-Nonce") {
		t.Error("pages cannot read the nonce")
	}
	for n, s := range slices.Concat(replicas, replicas) {
		if resp := sendWith(s, nonce); resp.StatusCode != 200 {
			t.Errorf("request %d with the nonce: status %d, want 200", n, resp.StatusCode)
		}
	}
	as.Advance(proofWindow + time.Second)
	for _, old := range []string{nonce, "forged", nonce + "x"} {
		if resp := sendWith(replicas[0], old); resp.StatusCode != 401 || resp.Header.Get("DPoP-Nonce") == "" {
			t.Errorf("nonce %s: status %d, want 401 with a new one", old, resp.StatusCode)
		}
	}
}

// TestProofLog checks how long proofs are remembered.
func TestProofLog(t *testing.T) {
	t.Parallel()
	l, now := newProofLog(), time.Unix(1_800_000_000, 0)
	first := oauth.Proof{ID: "1", Thumbprint: "a"}
	if !l.addNew(first, now) || !l.addNew(oauth.Proof{ID: "1", Thumbprint: "b"}, now) {
		t.Error("a new proof is refused")
	}
	for _, after := range []time.Duration{0, time.Minute, 2 * proofWindow, 2*proofWindow + time.Second} {
		if l.addNew(first, now.Add(after)) {
			t.Errorf("after %v, a proof is accepted again", after)
		}
	}
	for n := range maxProofs + 10 {
		l.addNew(oauth.Proof{ID: string(rune(n)), Thumbprint: "c"}, now)
	}
	if len(l.young)+len(l.old) > 2*maxProofs {
		t.Errorf("the log has %d proofs", len(l.young)+len(l.old))
	}
}

// TestExpiringStream checks that a stream has the token's expiry as its deadline.
func TestExpiringStream(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, nil)
	expires := as.Now().Add(time.Hour)
	for _, tt := range []struct {
		name    string
		request *http.Request
		want    bool
	}{
		{"GET", httptest.NewRequest(http.MethodGet, "/mcp", nil), true},
		{"call", newPOST("/mcp", ""), false},
		{"subscription", newPOST("/mcp", ""), true},
	} {
		if tt.name == "subscription" {
			tt.request.Header.Set("Mcp-Method", mcp.MethodListen)
		}
		tt.request.Header.Set("Authorization", "Bearer "+as.IssueToken(publicURL))
		var has bool
		var deadline time.Time
		s.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { deadline, has = r.Context().Deadline() })).ServeHTTP(httptest.NewRecorder(), tt.request)
		if has != tt.want || has && deadline.Sub(expires.Add(clockSkew)).Abs() > 2*time.Second {
			t.Errorf("%s: the deadline is %v (%v), want %v: %v", tt.name, deadline, has, expires, tt.want)
		}
	}
}
