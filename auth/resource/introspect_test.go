package resource

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// newOpaqueServer returns an issuer of opaque tokens and a server that asks it about them.
func newOpaqueServer(t *testing.T, o authtest.Options, change func(*Options)) (*authtest.Server, *Server) {
	t.Helper()
	o.Opaque, o.Clients = true, []authtest.Client{{ID: "rs:1", Secret: "s%c r&t"}}
	as := authtest.Start(t, &o)
	return as, newTestServer(t, as, func(o *Options) {
		o.Issuers[0].Introspection = &Introspection{ClientID: "rs:1", ClientSecret: "s%c r&t"}
		if change != nil {
			change(o)
		}
	})
}

func TestIntrospection(t *testing.T) {
	t.Parallel()
	as, s := newOpaqueServer(t, authtest.Options{}, nil)
	good := as.IssueToken(publicURL, "a", "b")
	expect := func(what, token string, status, questions int) {
		t.Helper()
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+token)); resp.StatusCode != status {
			t.Errorf("%s: status %d, want %d", what, resp.StatusCode, status)
		}
		if n := as.Count("introspect"); n != questions {
			t.Errorf("%s: %d questions to the issuer, want %d", what, n, questions)
		}
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if resp, token := send(s, newPOST("/mcp", "Bearer "+good)); resp.StatusCode != 200 || token.Subject != "alice" || len(token.Scopes) != 2 {
				t.Errorf("status %d with the token %+v", resp.StatusCode, token)
			}
		})
	}
	wg.Wait()
	expect("20 at once", good, 200, 1)
	as.Revoke(true, false)
	expect("revoked, within the minute", good, 200, 1)
	as.Advance(61 * time.Second)
	expect("revoked, after a minute", good, 401, 2)
	expect("refused again at once", good, 401, 2)
	as.Advance(6 * time.Second)
	expect("refused again later", good, 401, 3)
	expect("other audience", as.IssueToken("https://other.example/mcp"), 401, 4)
	expect("unknown", "abc", 401, 5)
	short := as.IssueToken(publicURL)
	expect("fresh", short, 200, 6)
	as.Advance(time.Hour + 30*time.Second)
	expect("expired within the skew, asked again", short, 401, 7)
}

// TestInactiveToken checks that an answer about an inactive token counts as a refusal, also if it
// has the claims of a valid one.
func TestInactiveToken(t *testing.T) {
	t.Parallel()
	var active atomic.Bool
	_, s := newOpaqueServer(t, authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
		if endpoint != "introspect" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"active":%t,"sub":"alice","aud":%q,"exp":%d}`, active.Load(), publicURL, time.Now().Add(time.Hour).Unix())
		return true
	}}, nil)
	for token, want := range map[string]int{"inactive": 401, "valid": 200} {
		active.Store(want == 200)
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+token)); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", token, resp.StatusCode, want)
		}
	}
}

// TestIntrospectionDown checks that a failed introspection is an error and not a refused token.
func TestIntrospectionDown(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	as, s := newOpaqueServer(t, authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() && endpoint == "introspect" {
			io.WriteString(w, "<html>maintenance</html>")
			return true
		}
		return false
	}}, nil)
	known, other := as.IssueToken(publicURL), as.IssueToken(publicURL)
	if resp, _ := send(s, newPOST("/mcp", "Bearer "+known)); resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	down.Store(true)
	for token, want := range map[string]int{known: 200, other: 503} {
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+token)); resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	down.Store(false)
	if resp, _ := send(s, newPOST("/mcp", "Bearer "+other)); resp.StatusCode != 200 {
		t.Errorf("up again: status %d, want 200", resp.StatusCode)
	}
}

// TestWrongCredentials checks that a mistake in the server's own credentials is not the caller's.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	as, s := newOpaqueServer(t, authtest.Options{}, func(o *Options) { o.Issuers[0].Introspection.ClientSecret = "wrong" })
	if resp, _ := send(s, newPOST("/mcp", "Bearer "+as.IssueToken(publicURL))); resp.StatusCode != 503 {
		t.Errorf("status %d, want 503", resp.StatusCode)
	}
}

// TestRefusedTokensPushOutNone checks that refusals do not fill the cache of valid tokens.
func TestRefusedTokensPushOutNone(t *testing.T) {
	t.Parallel()
	c, now := newTokenCache(), time.Unix(1_800_000_000, 0)
	valid := newTokenKey("valid")
	c.addVerdict(valid, verdict{until: now.Add(time.Minute)})
	for n := range 3 * maxRefused {
		c.addVerdict(newTokenKey(strings.Repeat("x", n%100)+string(rune('a'+n%26))+time.Duration(n).String()), verdict{err: io.EOF, until: now.Add(time.Minute)})
	}
	if _, ok := c.findVerdict(valid, now); !ok {
		t.Error("the valid token is forgotten")
	}
	if len(c.refused) > maxRefused {
		t.Errorf("the cache has %d refusals, want at most %d", len(c.refused), maxRefused)
	}
	for n := range 2*halfCache - 1 {
		c.addVerdict(newTokenKey(time.Duration(n).String()), verdict{until: now.Add(time.Minute)})
		if n%1000 == 0 {
			if _, ok := c.findVerdict(valid, now); !ok {
				t.Fatalf("a token in use is forgotten after %d others", n)
			}
		}
	}
	if n := len(c.young) + len(c.old); n > 2*halfCache {
		t.Errorf("the cache has %d verdicts, want at most %d", n, 2*halfCache)
	}
}

// TestIntrospectAlways checks that signed tokens are looked up if the issuer wants that.
func TestIntrospectAlways(t *testing.T) {
	t.Parallel()
	for _, always := range []bool{false, true} {
		as := authtest.Start(t, &authtest.Options{Clients: []authtest.Client{{ID: "rs", Secret: "secret"}}})
		s := newTestServer(t, as, func(o *Options) {
			o.Issuers[0].Introspection = &Introspection{ClientID: "rs", ClientSecret: "secret", Always: always}
		})
		token := as.IssueToken(publicURL)
		as.Revoke(true, false)
		want := map[bool]int{false: 200, true: 401}[always]
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+token)); resp.StatusCode != want {
			t.Errorf("Always %v: status %d for a revoked token, want %d", always, resp.StatusCode, want)
		}
	}
}

// TestTokensStayWithTheirIssuer checks that a token which names its issuer is shown to no other
// one.
func TestTokensStayWithTheirIssuer(t *testing.T) {
	t.Parallel()
	const stranger = "https://stranger.example"
	for _, always := range []bool{false, true} {
		clients := []authtest.Client{{ID: "rs", Secret: "secret"}}
		first, second := authtest.Start(t, &authtest.Options{Clients: clients}), authtest.Start(t, &authtest.Options{Clients: clients})
		s := newTestServer(t, first, func(o *Options) {
			o.Issuers = nil
			for _, as := range []*authtest.Server{first, second} {
				o.Issuers = append(o.Issuers, Issuer{URL: as.Issuer, Introspection: &Introspection{ClientID: "rs", ClientSecret: "secret", Always: always}})
			}
		})
		foreign := goodClaims(second)
		foreign["iss"] = stranger
		doubled := "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+stranger+`","iss":"`+stranger+`"}`)) + ".AAAA"
		for _, tt := range []struct {
			name, token           string
			status, ofSecond, all int // questions to the second issuer if Always, and to both
		}{
			{name: "second issuer", token: second.IssueToken(publicURL), status: 200, ofSecond: 1},
			{name: "unknown issuer", token: second.Sign(nil, foreign), status: 401},
			{name: "unreadable payload", token: doubled, status: 401},
			{name: "opaque with two dots", token: "v4.local.abc", status: 401, all: 1},
			{name: "opaque", token: "abc", status: 401, all: 1},
		} {
			before, beforeSecond := first.Count("introspect"), second.Count("introspect")
			if resp, _ := send(s, newPOST("/mcp", "Bearer "+tt.token)); resp.StatusCode != tt.status {
				t.Errorf("Always %v, %s: status %d, want %d", always, tt.name, resp.StatusCode, tt.status)
			}
			want := [2]int{tt.all, tt.all}
			if always {
				want[1] += tt.ofSecond
			}
			if got := [2]int{first.Count("introspect") - before, second.Count("introspect") - beforeSecond}; got != want {
				t.Errorf("Always %v, %s: the issuers were asked %v times, want %v", always, tt.name, got, want)
			}
		}
	}
}

// TestManyVerifications checks that unknown tokens cannot start any number of questions, that one
// sender leaves room for others, and that signed tokens are verified meanwhile.
func TestManyVerifications(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	as, s := newOpaqueServer(t, authtest.Options{OnRequest: func(endpoint string, _ http.ResponseWriter, r *http.Request) bool {
		if endpoint == "introspect" && strings.HasPrefix(r.Form.Get("token"), "unknown") {
			<-release
		}
		return false
	}}, nil)
	sendFrom := func(sender, token string) int {
		r := newPOST("/mcp", "Bearer "+token)
		r.RemoteAddr = sender
		resp, _ := send(s, r)
		return resp.StatusCode
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(release)
	sent := 0
	flood := func(from func(n int) string) {
		t.Helper()
		for n := range maxVerifications / 2 {
			sent++
			token := fmt.Sprintf("unknown%d", sent)
			wg.Go(func() { sendFrom(from(n), token) })
		}
		deadline := time.Now().Add(30 * time.Second)
		for s.cache.pending() < sent {
			if time.Now().After(deadline) {
				t.Fatalf("%d verifications, want %d", s.cache.pending(), sent)
			}
			waitBriefly(t.Context())
		}
	}
	expect := func(what, sender, token string, want int) {
		t.Helper()
		if status := sendFrom(sender, token); status != want {
			t.Errorf("%s: status %d, want %d", what, status, want)
		}
	}
	flood(func(n int) string { return fmt.Sprintf("[2001:db8::%x]:1", n) })
	expect("the sender of many", "[2001:db8::1:0:0:1]:2", as.IssueToken(publicURL), 503)
	expect("a signed token of the sender", "[2001:db8::1]:2", as.Sign(nil, goodClaims(as)), 200)
	expect("another sender", "[2001:db8:0:1::1]:1", as.IssueToken(publicURL), 200)
	flood(func(n int) string { return fmt.Sprintf("192.0.2.%d:1", n) })
	expect("full", "[2001:db8:0:1::1]:1", as.IssueToken(publicURL), 503)
	expect("a signed token when full", "[2001:db8::1]:2", as.Sign(nil, goodClaims(as)), 200)
}

func (c *tokenCache) pending() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.verifies)
}

// A refresh token or an ID token that an issuer calls active is no access token.
func TestActiveTokenForOtherUse(t *testing.T) {
	t.Parallel()
	var kind atomic.Value
	_, s := newOpaqueServer(t, authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, _ *http.Request) bool {
		if endpoint != "introspect" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"active":true,"sub":"alice","aud":%q,"exp":%d,%s}`, publicURL, time.Now().Add(time.Hour).Unix(), kind.Load())
		return true
	}}, nil)
	n := 0
	for member, want := range map[string]int{
		`"typ":"Refresh"`: 401, `"typ":"Offline"`: 401, `"typ":"ID"`: 401, `"token_use":"id"`: 401, `"typ":"Bearer"`: 200, `"token_use":"access"`: 200,
	} {
		kind.Store(member)
		n++
		if resp, _ := send(s, newPOST("/mcp", fmt.Sprint("Bearer token-", n))); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", member, resp.StatusCode, want)
		}
	}
}
