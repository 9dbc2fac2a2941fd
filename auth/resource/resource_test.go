package resource

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

const publicURL = "https://mcp.example.com/mcp"

// newTestServer returns a server that accepts tokens of as and uses its clock.
func newTestServer(t *testing.T, as *authtest.Server, change func(*Options)) *Server {
	t.Helper()
	opts := Options{URL: publicURL, Issuers: []Issuer{{URL: as.Issuer}}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if change != nil {
		change(&opts)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.now = as.Now
	return s
}

// send sends a request through Protect. It returns the answer and the token that the handler has
// seen.
func send(s *Server, r *http.Request) (*http.Response, *Token) {
	var seen *Token
	w := httptest.NewRecorder()
	s.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = FromContext(r.Context()) })).ServeHTTP(w, r)
	return w.Result(), seen
}

// newPOST returns a request with a value of Authorization, if it is not empty.
func newPOST(target, authorization string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, func(o *Options) {
		o.Scopes, o.Name, o.Documentation, o.OfferDPoP = []string{"notes:read"}, "Notes", "https://example.com/docs", true
	})
	for _, tt := range []struct {
		path   string
		status int
		want   string // resource
	}{
		{"/.well-known/oauth-protected-resource/mcp", 200, "https://mcp.example.com/mcp"},
		{"/.well-known/oauth-protected-resource/mcp/", 200, "https://mcp.example.com/mcp"},
		{"/.well-known/oauth-protected-resource/mcp/files", 200, "https://mcp.example.com/mcp/files"},
		{"/.well-known/oauth-protected-resource/mcpx", 404, ""},
		{"/.well-known/oauth-protected-resource", 404, ""},
	} {
		resp, _ := send(s, httptest.NewRequest(http.MethodGet, tt.path, nil))
		if resp.StatusCode != tt.status || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: status %d with %v, want %d with CORS for all", tt.path, resp.StatusCode, resp.Header, tt.status)
		}
		if tt.status != 200 {
			continue
		}
		got, _ := io.ReadAll(resp.Body)
		want := `{"resource":"` + tt.want + `","authorization_servers":["` + as.Issuer + `"],"scopes_supported":["notes:read"],` +
			`"bearer_methods_supported":["header"],"resource_name":"Notes","resource_documentation":"https://example.com/docs",` +
			`"dpop_signing_alg_values_supported":["ES256","ES384","EdDSA","PS256","RS256"]}`
		if string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.path, got, want)
		}
	}
	preflight := httptest.NewRequest(http.MethodOptions, "/.well-known/oauth-protected-resource/mcp", nil)
	if resp, _ := send(s, preflight); resp.StatusCode != http.StatusNoContent || !strings.Contains(resp.Header.Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version") {
		t.Errorf("preflight: status %d with %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := send(s, httptest.NewRequest(http.MethodPost, "/.well-known/oauth-protected-resource/mcp", nil)); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d, want 405", resp.StatusCode)
	}
}

// TestPathsWithoutToken checks which other requests are answered without a token.
func TestPathsWithoutToken(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, authtest.Start(t, nil), nil)
	h := s.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, tt := range []struct {
		method, path string
		header       http.Header
		want         int
	}{
		{"OPTIONS", "/mcp", http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"POST"}}, http.StatusTeapot},
		{"OPTIONS", "/mcp", http.Header{"Access-Control-Request-Method": {"POST"}}, 401},
		{"OPTIONS", "/mcp", nil, 401},
		{"GET", "/.well-known/oauth-authorization-server", nil, 404},
		{"GET", "/.well-known/openid-configuration", nil, 404},
		{"GET", "/.well-known/other", nil, 401},
		{"GET", "/", nil, 401},
	} {
		r := httptest.NewRequest(tt.method, tt.path, nil)
		r.Header = tt.header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%s %s with %v: status %d, want %d", tt.method, tt.path, tt.header, w.Code, tt.want)
		}
	}
}

// TestLoopbackNames checks that a server at a loopback address has the host that the client uses,
// if it is a loopback host too.
func TestLoopbackNames(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, func(o *Options) { o.URL = "http://127.0.0.1:8080/mcp" })
	for host, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/mcp", "localhost:8080": "http://localhost:8080/mcp", "[::1]:8080": "http://[::1]:8080/mcp",
		"localhost:9090": "http://127.0.0.1:8080/mcp", "evil.example:8080": "http://127.0.0.1:8080/mcp",
	} {
		r := httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource/mcp", nil)
		r.Host = host
		resp, _ := send(s, r)
		var document struct{ Resource string }
		if err := json.NewDecoder(resp.Body).Decode(&document); err != nil || document.Resource != want {
			t.Errorf("Host %s: the resource is %q (%v), want %s", host, document.Resource, err, want)
		}
	}
	for audience, want := range map[string]int{"http://localhost:8080/mcp": 200, "http://[::1]:8080/mcp": 200, "http://localhost:9090/mcp": 401, "https://localhost:8080/mcp": 401} {
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+as.IssueToken(audience))); resp.StatusCode != want {
			t.Errorf("audience %s: status %d, want %d", audience, resp.StatusCode, want)
		}
	}
}

func TestChallenges(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	const metadata = `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	algs := `algs="ES256 ES384 EdDSA PS256 RS256"`
	description := func(code string) string { return `error="` + code + `", error_description="` + texts[code] + `"` }
	good := as.IssueToken(publicURL, "notes:read")
	for _, tt := range []struct {
		name    string
		request *http.Request
		options func(*Options)
		status  int
		want    []string
	}{
		{"valid", newPOST("/mcp", "Bearer "+good), nil, 200, nil},
		{"scheme in lower case", newPOST("/mcp", "bearer "+good), nil, 200, nil},
		{"no token", newPOST("/mcp", ""), nil, 401, []string{`Bearer scope="notes:read", ` + metadata}},
		{"no token, no scopes", newPOST("/mcp", ""), func(o *Options) { o.Scopes = nil }, 401, []string{`Bearer ` + metadata}},
		{"other path", newPOST("/mcp/files", ""), nil, 401, []string{`Bearer scope="notes:read", ` + strings.TrimSuffix(metadata, `"`) + `/files"`}},
		{"path changed by a proxy", newPOST("/", ""), nil, 401, []string{`Bearer scope="notes:read", ` + metadata}},
		{"DPoP offered", newPOST("/mcp", ""), func(o *Options) { o.OfferDPoP = true }, 401, []string{`Bearer scope="notes:read", ` + metadata, `DPoP scope="notes:read", ` + metadata + `, ` + algs}},
		{"DPoP required", newPOST("/mcp", ""), func(o *Options) { o.RequireDPoP = true }, 401, []string{`DPoP scope="notes:read", ` + metadata + `, ` + algs}},
		{"other scheme", newPOST("/mcp", "Basic YTpi"), nil, 401, []string{`Bearer scope="notes:read", ` + metadata}},
		{"invalid", newPOST("/mcp", "Bearer abc"), nil, 401, []string{`Bearer ` + description("invalid_token") + `, scope="notes:read", ` + metadata}},
		{"empty", newPOST("/mcp", "Bearer "), nil, 400, []string{`Bearer ` + description("invalid_request") + `, scope="notes:read", ` + metadata}},
		{"two words", newPOST("/mcp", "Bearer a b"), nil, 400, []string{`Bearer ` + description("invalid_request") + `, scope="notes:read", ` + metadata}},
		{"large", newPOST("/mcp", "Bearer "+strings.Repeat("a", maxToken+1)), nil, 400, []string{`Bearer ` + description("invalid_request") + `, scope="notes:read", ` + metadata}},
		{"in the query", newPOST("/mcp?access_token="+good, "Bearer "+good), nil, 400, []string{`Bearer ` + description("invalid_request") + `, scope="notes:read", ` + metadata}},
		{"in an escaped query", newPOST("/mcp?access%5ftoken="+good, "Bearer "+good), nil, 400, []string{`Bearer ` + description("invalid_request") + `, scope="notes:read", ` + metadata}},
		{"few scopes", newPOST("/mcp", "Bearer "+as.IssueToken(publicURL, "other")), nil, 403, []string{`Bearer ` + description("insufficient_scope") + `, scope="notes:read", ` + metadata}},
		{"implied scope", newPOST("/mcp", "Bearer "+as.IssueToken(publicURL, "all")), func(o *Options) {
			o.ImpliedScopes = map[string][]string{"all": {"notes:write"}, "notes:write": {"notes:read", "all"}}
		}, 200, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestServer(t, as, func(o *Options) {
				o.Scopes = []string{"notes:read"}
				if tt.options != nil {
					tt.options(o)
				}
			})
			resp, seen := send(s, tt.request)
			if resp.StatusCode != tt.status || !slices.Equal(resp.Header.Values("WWW-Authenticate"), tt.want) {
				t.Errorf("status %d with\n%q\nwant %d with\n%q", resp.StatusCode, resp.Header.Values("WWW-Authenticate"), tt.status, tt.want)
			}
			if (seen != nil) != (tt.status == 200) {
				t.Errorf("the handler saw the token %v", seen)
			}
			if tt.status != 200 && !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
				t.Error("pages of other origins cannot read the challenge")
			}
		})
	}
	twice := newPOST("/mcp", "Bearer "+good)
	twice.Header.Add("Authorization", "Bearer "+good)
	if resp, _ := send(newTestServer(t, as, nil), twice); resp.StatusCode != 400 {
		t.Errorf("two Authorization fields: status %d, want 400", resp.StatusCode)
	}
}

// TestScopeChallenge checks that the challenge of a tool names the scopes of every request too:
// a token with the scopes of the tool alone would be refused in its turn.
func TestScopeChallenge(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, func(o *Options) { o.Scopes = []string{"notes:read", "notes"} })
	w := httptest.NewRecorder()
	s.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpwire.RefuseScopes(w, r, jsonrpc.ID{}, []string{"notes:write", "notes"})
	})).ServeHTTP(w, newPOST("/mcp", "Bearer "+as.IssueToken(publicURL, "notes:read", "notes")))
	if got := w.Header().Get("WWW-Authenticate"); !strings.Contains(got, `scope="notes:read notes notes:write"`) {
		t.Errorf("the challenge is %s, want all scopes", got)
	}
}

// TestToken checks the token that handlers see.
func TestToken(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, nil)
	exp := as.Now().Add(time.Hour).Truncate(time.Second)
	raw := as.Sign(nil, map[string]any{"iss": as.Issuer, "aud": []string{"other", publicURL}, "sub": "ann", "azp": "client-1", "exp": exp.Unix(), "scp": []string{"a", "b"}, "tenant": "t1"})
	_, got := send(s, newPOST("/mcp", "Bearer "+raw))
	if got == nil {
		t.Fatal("the token is refused")
	}
	if got.Issuer != as.Issuer || got.Subject != "ann" || got.ClientID != "client-1" || !slices.Equal(got.Scopes, []string{"a", "b"}) || !got.Expires.Equal(exp) || !strings.Contains(string(got.Claims), `"tenant":"t1"`) {
		t.Errorf("got %+v", got)
	}
	if id := got.principal().ID; id != as.Issuer+"#ann" {
		t.Errorf("the principal is %q", id)
	}
}

// TestNarrowTokens checks tokens whose audience is a path below the server's URL.
func TestNarrowTokens(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, func(o *Options) { o.URL, o.Audiences = "https://mcp.example.com", []string{"api-1"} })
	for _, tt := range []struct {
		audience, path string
		want           int
	}{
		{"https://mcp.example.com", "/mcp", 200},
		{"https://mcp.example.com/", "/mcp", 200},
		{"https://MCP.example.com", "/mcp/files", 200},
		{"api-1", "/mcp/files", 200},
		{"https://mcp.example.com/mcp", "/mcp", 200},
		{"https://mcp.example.com/mcp", "/mcp/files", 401},
		{"https://mcp.example.com/mcp/files", "/mcp/files", 200},
		{"https://mcp.example.com/mcp/files", "/mcp/mail", 401},
		{"https://mcp.example.com/mcp?x=1", "/mcp", 401},
		{"https://mcp.example.com:8443", "/mcp", 401},
		{"http://mcp.example.com", "/mcp", 401},
		{"https://mcp.example.com.evil.example", "/mcp", 401},
		{"https://user@mcp.example.com", "/mcp", 401},
		{"api-2", "/mcp", 401},
		{"", "/mcp", 401},
	} {
		if resp, _ := send(s, newPOST(tt.path, "Bearer "+as.IssueToken(tt.audience))); resp.StatusCode != tt.want {
			t.Errorf("audience %s at %s: status %d, want %d", tt.audience, tt.path, resp.StatusCode, tt.want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	issuers := []Issuer{{URL: "https://as.example.com"}}
	for _, tt := range []struct {
		name string
		opts Options
		want string // in the error; empty if the options are valid
	}{
		{"valid", Options{URL: publicURL, Issuers: issuers}, ""},
		{"no URL", Options{Issuers: issuers}, "want https://HOST/PATH"},
		{"not encrypted", Options{URL: "http://mcp.example.com", Issuers: issuers}, "not encrypted"},
		{"fragment", Options{URL: publicURL + "#a", Issuers: issuers}, "without user, query and fragment"},
		{"no issuer", Options{URL: publicURL}, "no issuer"},
		{"issuer twice", Options{URL: publicURL, Issuers: slices.Concat(issuers, issuers)}, "listed twice"},
		{"issuer not encrypted", Options{URL: publicURL, Issuers: []Issuer{{URL: "http://as.example.com"}}}, "not encrypted"},
		{"symmetric algorithm", Options{URL: publicURL, Issuers: []Issuer{{URL: "https://as.example.com", Algorithms: []string{"HS256"}}}}, `"HS256" is not usable`},
		{"no algorithm", Options{URL: publicURL, Issuers: []Issuer{{URL: "https://as.example.com", Algorithms: []string{"none"}}}}, `"none" is not usable`},
		{"bad scope", Options{URL: publicURL, Issuers: issuers, Scopes: []string{"a b"}}, `"a b" is not a scope`},
	} {
		_, err := New(tt.opts)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
