package auth

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// scopedSetup is a server whose tools need the scopes of their names, such as "write".
func scopedSetup(t *testing.T, o Options) *setup {
	t.Helper()
	s := &setup{t: t, as: authtest.Start(t, nil)}
	s.rs = s.as.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tool, _ := rawjson.String(rawjson.Lookup(rawjson.Lookup(body, "params"), "name"))
		granted := s.as.Requests("authorize")
		if tool == "" || tool != "never" && slices.Contains(strings.Fields(granted[len(granted)-1].Form.Get("scope")), tool) {
			return
		}
		if tool != "silent" {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+tool+`"`)
		}
		w.WriteHeader(http.StatusForbidden)
	}), "read")
	s.login = &testLogin{as: s.as}
	if o.Login == nil {
		o.Login = s.login
	}
	s.Transport = s.newTransport(o)
	return s
}

func (s *setup) callTool(tool string) (int, error) {
	return post(s.t.Context(), s.Transport, s.rs.URL, `{"method":"tools/call","params":{"name":"`+tool+`"}}`)
}

// A step-up asks for the scopes of the token and of the challenge, and uses no refresh token.
func TestStepUp(t *testing.T) {
	t.Parallel()
	s := scopedSetup(t, Options{})
	for _, tool := range []string{"write", "write", "admin"} {
		if status, err := s.callTool(tool); err != nil || status != http.StatusOK {
			t.Fatalf("%s: status %d, %v", tool, status, err)
		}
	}
	var scopes []string
	for _, r := range s.as.Requests("authorize") {
		scopes = append(scopes, r.Form.Get("scope"))
	}
	if want := []string{"read", "read write", "read write admin"}; !slices.Equal(scopes, want) {
		t.Errorf("asked for %q, want %q", scopes, want)
	}
	s.wantCounts(map[string]int{"refresh_token": 0, "register": 1})
}

// Requests of one operation at a time share a step-up; requests of others get their own scopes.
func TestParallelStepUps(t *testing.T) {
	t.Parallel()
	s := scopedSetup(t, Options{})
	s.mustPost(s.Transport)
	var wg sync.WaitGroup
	for range 8 {
		for _, tool := range []string{"write", "admin"} {
			wg.Go(func() {
				if status, err := s.callTool(tool); err != nil || status != http.StatusOK {
					t.Errorf("%s: status %d, %v", tool, status, err)
				}
			})
		}
	}
	wg.Wait()
	if n := s.as.Count("authorize"); n > 3 {
		t.Errorf("%d logins, want at most 3", n)
	}
}

// A step-up that helped does not count for later ones of the operation.
func TestSuccessfulStepUpsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := scopedSetup(t, Options{})
	for range maxStepUps + 1 {
		if status, err := s.callTool("write"); err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %v", status, err)
		}
		s.setRecord(s.Transport, func(r *Record) { *r = Record{Server: r.Server} })
		s.as.Revoke(true, false)
	}
}

// The login after the end of a token asks for the scopes that its step-ups had added.
func TestLoginKeepsScopesOfStepUps(t *testing.T) {
	t.Parallel()
	s := scopedSetup(t, Options{})
	if status, err := s.callTool("write"); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v", status, err)
	}
	s.as.Revoke(true, false)
	if status, err := s.callTool("write"); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v", status, err)
	}
	if all := s.as.Requests("authorize"); len(all) != 3 || all[2].Form.Get("scope") != "read write" {
		t.Errorf("%d logins, the last with %v", len(all), all[len(all)-1].Form["scope"])
	}
}

// An operation leads to at most two step-ups, also in later requests; others still have theirs.
func TestStepUpIsBounded(t *testing.T) {
	t.Parallel()
	s := scopedSetup(t, Options{})
	for range 3 {
		_, err := s.callTool("never")
		var lacks *ScopeNeeded
		if !errors.As(err, &lacks) || lacks.Operation != "tools/call never" || !slices.Equal(lacks.Scopes, []string{"never"}) {
			t.Errorf("%v", err)
		}
	}
	s.wantCounts(map[string]int{"authorize": 1 + maxStepUps})
	if status, err := s.callTool("write"); err != nil || status != http.StatusOK {
		t.Errorf("another operation: status %d, %v", status, err)
	}
}

// A refusal that names scopes and no error leads to a step-up if the token lacks one of them.
func TestScopesWithoutError(t *testing.T) {
	t.Parallel()
	for named, wantLogins := range map[string]int{"read write": 2, "read": 1} {
		as := authtest.Start(t, nil)
		refused := false
		rs := as.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !refused {
				refused = true
				w.Header().Set("WWW-Authenticate", `Bearer scope="`+named+`"`)
				w.WriteHeader(http.StatusForbidden)
			}
		}), "read")
		tr, err := NewTransport(rs.URL, &Options{Login: &testLogin{as: as}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]int{2: http.StatusOK, 1: http.StatusForbidden}[wantLogins]
		if status, err := post(t.Context(), tr, rs.URL, "{}"); err != nil || status != want {
			t.Errorf("%s: status %d, %v, want %d", named, status, err, want)
		}
		all := as.Requests("authorize")
		if len(all) != wantLogins || all[len(all)-1].Form.Get("scope") != named {
			t.Errorf("%s: %d logins, want %d; the last asked for %q", named, len(all), wantLogins, all[len(all)-1].Form.Get("scope"))
		}
	}
}

// A refusal without scopes is the server's own affair.
func TestForbiddenWithoutScopes(t *testing.T) {
	t.Parallel()
	s := scopedSetup(t, Options{})
	if status, err := s.callTool("silent"); err != nil || status != http.StatusForbidden {
		t.Errorf("status %d, %v", status, err)
	}
	s.wantCounts(map[string]int{"authorize": 1})
}

func TestStepUpWithoutUser(t *testing.T) {
	t.Parallel()
	store := NewStore()
	s := scopedSetup(t, Options{Store: store})
	s.mustPost(s.Transport)
	s.Transport = s.newTransport(Options{Store: store})
	_, err := s.callTool("write")
	var lacks *ScopeNeeded
	if !errors.As(err, &lacks) || !slices.Equal(lacks.Granted, []string{"read"}) || !strings.Contains(err.Error(), "log in again") {
		t.Errorf("%v", err)
	}
	s.wantCounts(map[string]int{"authorize": 1})
}

func TestRequestOperation(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"method":"tools/call","params":{"name":"greet","arguments":{"name":"x"}}}`: "tools/call greet",
		`{"method":"resources/read","params":{"uri":"file:///a"}}`:                   "resources/read file:///a",
		`{"method":"tools/list"}`: "tools/list",
		`[]`:                      "POST /mcp",
		`not JSON`:                "POST /mcp",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.example/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := requestOperation(r); got != want {
			t.Errorf("%s is %q, want %q", body, got, want)
		}
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "other")
		if got := requestOperation(r); got != "tools/call other" {
			t.Errorf("with fields it is %q", got)
		}
	}
}

// The challenge of the scheme that was sent says why the token was refused; others offer
// alternatives.
func TestReadChallenge(t *testing.T) {
	t.Parallel()
	h := http.Header{"Www-Authenticate": {
		`Bearer error="insufficient_scope", scope="write"`,
		`DPoP algs="ES256", error="use_dpop_nonce", resource_metadata="https://a.example/metadata"`,
	}}
	for sent, want := range map[string]string{"Bearer": "insufficient_scope write", "DPoP": "use_dpop_nonce ", "": "insufficient_scope write"} {
		c := readChallenge(h, sent)
		if got := c.code + " " + joinScopes(c.scopes); got != want || !c.dpop || c.metadataURL == "" {
			t.Errorf("%q was sent: %+v, want %s", sent, c, want)
		}
	}
	if c := readChallenge(http.Header{"Www-Authenticate": {`DPoP error="invalid_token"`}}, "Bearer"); c.code != "invalid_token" {
		t.Errorf("only another scheme: %+v", c)
	}
}
