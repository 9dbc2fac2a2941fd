package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

func TestCheckResource(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		server, resource string
		ok               bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp", "HTTPS://A.example:443/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcp/", true},
		{"https://a.example", "https://a.example/", true},
		{"https://a.example/mcp", "https://a.example", true},
		{"https://a.example/public/mcp", "https://a.example/public", true},
		{"https://a.example/mcp?team=1", "https://a.example/mcp", true},
		{"https://a.example/mcp?team=1", "https://a.example/mcp?team=1", true},
		{"https://a.example/mcp?team=1", "https://a.example/mcp?team=2", false},
		{"https://a.example/mcp", "https://a.example/mcp?team=1", false},
		{"https://a.example/mcp", "https://a.example/mc", false},
		{"https://a.example/mcp", "https://a.example/mcp2", false},
		{"https://a.example/mcp", "https://a.example/mcp/deeper", false},
		{"https://a.example/mcp", "https://a.example:8443/mcp", false},
		{"https://a.example/mcp", "http://a.example/mcp", false},
		{"https://a.example/mcp", "https://b.example/mcp", false},
		{"https://a.example/mcp", "https://a.example.b.example/mcp", false},
		{"https://a.example/mcp", "https://a.example/mcp#x", false},
		{"https://a.example/mcp", "a.example/mcp", false},
		{"https://a.example/mcp", "", false},
	} {
		server, err := url.Parse(tt.server)
		if err != nil {
			t.Fatal(err)
		}
		m := &oauth.ResourceMetadata{Resource: tt.resource, AuthorizationServers: []string{"https://as.example"}}
		if err := checkResource(m, server); (err == nil) != tt.ok {
			t.Errorf("server %s, resource %s: %v", tt.server, tt.resource, err)
		}
	}
}

func TestCheckIssuer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		issuer, document string
		ok               bool
	}{
		{"https://a.example", "https://a.example", true},
		{"https://a.example", "https://a.example/", true},
		{"https://a.example/", "https://a.example", true},
		{"https://a.example/t", "https://a.example/t/", false},
		{"https://a.example/t/", "https://a.example/t", false},
		{"https://a.example", "https://A.example", false},
		{"https://a.example", "https://b.example", false},
		{"https://a.example", "https://a.example:443", false},
		{"https://a.example", "", false},
		{"", "https://any.example", true},
	} {
		m := &oauth.ServerMetadata{Issuer: tt.document, TokenEndpoint: "https://a.example/token"}
		if err := checkServer(m, tt.issuer); (err == nil) != tt.ok {
			t.Errorf("issuer %q, document %q: %v", tt.issuer, tt.document, err)
		}
	}
}

func TestEndpointsAreSecure(t *testing.T) {
	t.Parallel()
	for endpoint, ok := range map[string]bool{
		"https://a.example/token": true, "http://localhost:1/token": true, "http://127.0.0.1/token": true, "http://[::1]/token": true,
		"http://a.example/token": false, "javascript:alert(1)": false, "file:///etc/passwd": false, "data:text/html,x": false, "//a.example/token": false,
	} {
		m := &oauth.ServerMetadata{Issuer: "https://a.example", TokenEndpoint: endpoint}
		if err := checkServer(m, "https://a.example"); (err == nil) != ok {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// Discovery succeeds with each form of metadata that servers are known to have.
func TestDiscoveryWithQuirks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		path   string // of the issuer
		quirks []string
		server Server
	}{
		{"all", "", nil, Server{}},
		{"issuer with a path", "/tenant1", nil, Server{}},
		{"OAuth only", "/tenant1", []string{"oauth-only"}, Server{}},
		{"OpenID only", "/tenant1", []string{"openid-only"}, Server{}},
		{"OpenID appended only", "/tenant1", []string{"openid-appended-only"}, Server{}},
		{"400", "", []string{"openid-only", "wellknown-400"}, Server{}},
		{"403", "/tenant1", []string{"openid-appended-only", "wellknown-403"}, Server{}},
		{"502", "", []string{"openid-only", "wellknown-502"}, Server{}},
		{"web pages", "", []string{"openid-only", "wellknown-html", "challenge-plain", "resource-root"}, Server{}},
		{"slash", "", []string{"issuer-slash"}, Server{}},
		{"no metadata", "", []string{"challenge-bare"}, Server{}},
		{"no address of the metadata", "", []string{"challenge-plain"}, Server{}},
		{"metadata at the root", "", []string{"resource-root"}, Server{}},
		{"resource is the origin", "", []string{"resource-origin"}, Server{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, &authtest.Options{Path: tt.path, Quirks: tt.quirks}, Options{Server: tt.server})
			s.mustPost(s.Transport)
			if _, tried, err := s.Discover(t.Context()); err != nil || len(tried) < 2 || tried[len(tried)-1].Problem != "" {
				t.Errorf("%v, %v", tried, err)
			}
		})
	}
}

// The metadata that a challenge names counts before the metadata at the well-known addresses.
func TestMetadataOfChallengeComesFirst(t *testing.T) {
	t.Parallel()
	named, other := authtest.Start(t, nil), authtest.Start(t, nil)
	rs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := "http://" + r.Host
		writeMetadata := func(issuer string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, origin+"/mcp", issuer)
		}
		switch {
		case r.URL.Path == "/metadata":
			writeMetadata(named.Issuer)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			writeMetadata(other.Issuer)
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+origin+`/metadata"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer rs.Close()
	tr, err := NewTransport(rs.URL+"/mcp", &Options{Login: &testLogin{as: named}})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := post(t.Context(), tr, rs.URL+"/mcp", "{}"); err != nil || status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	if right, wrong := named.Count("authorize"), other.Count("register"); right != 1 || wrong != 0 {
		t.Errorf("%d logins at the server of the challenge and %d registrations at the other, want 1 and 0", right, wrong)
	}
}

// Discovery fails, and no endpoint is used, if the metadata belongs to another server.
func TestDiscoveryRefuses(t *testing.T) {
	t.Parallel()
	for quirk, want := range map[string]string{
		"issuer-other": "its issuer is", "issuer-template": "RFC 8414, section 3.3", "resource-elsewhere": "its resource is https://elsewhere.example/mcp",
	} {
		t.Run(quirk, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, &authtest.Options{Quirks: []string{quirk}}, Options{})
			_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
			var failed *DiscoveryError
			if !errors.As(err, &failed) || !strings.Contains(failed.Reason, want) || len(failed.tried) == 0 {
				t.Errorf("%v", err)
			}
			if _, _, err := s.Discover(t.Context()); !errors.As(err, &failed) || !strings.Contains("MetadataURL Resource", failed.Setting) || failed.Setting == "" {
				t.Errorf("%v with the setting %q", err, failed.Setting)
			}
			s.wantCounts(map[string]int{"register": 0, "authorize": 0, "token": 0})
		})
	}
}

// A server of revision 2025-03-26 is its own authorization server, with metadata or without.
func TestFallback(t *testing.T) {
	t.Parallel()
	for _, hasMetadata := range []bool{true, false} {
		t.Run(fmt.Sprint("metadata ", hasMetadata), func(t *testing.T) {
			t.Parallel()
			var as *authtest.Server
			origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "":
					w.WriteHeader(http.StatusUnauthorized)
				case r.URL.Path == "/mcp":
				case r.URL.Path == "/.well-known/oauth-authorization-server" && hasMetadata:
					w.Header().Set("Content-Type", "application/json")
					at := "http://" + r.Host
					_ = json.NewEncoder(w).Encode(map[string]any{
						"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
					})
				case strings.HasPrefix(r.URL.Path, "/.well-known/"):
					http.NotFound(w, r)
				default:
					as.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(origin.Close)
			as = authtest.Start(t, &authtest.Options{Quirks: []string{"iss-none"}})
			login := &testLogin{as: as}
			login.as = as
			tr, err := NewTransport(origin.URL+"/mcp", &Options{Login: LoginFunc(func(ctx context.Context, r LoginRequest) (url.Values, error) {
				page, err := r.Start(ctx, testRedirect)
				if err != nil {
					return nil, err
				}
				to, err := as.Approve(ctx, strings.Replace(page, origin.URL, as.URL, 1))
				if err != nil {
					return nil, err
				}
				return to.Query(), nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			if status, err := post(t.Context(), tr, origin.URL+"/mcp", "{}"); err != nil || status != http.StatusOK {
				t.Fatalf("status %d, %v", status, err)
			}
			if q := as.Requests("authorize")[0].Form; q.Has("resource") || q.Get("code_challenge") == "" {
				t.Errorf("%v", q)
			}
			strict, err := NewTransport(origin.URL+"/mcp", &Options{Login: login, Server: Server{NoFallback: true}})
			if err != nil {
				t.Fatal(err)
			}
			var failed *DiscoveryError
			if _, err := post(t.Context(), strict, origin.URL+"/mcp", "{}"); !errors.As(err, &failed) {
				t.Errorf("without the fallback: %v", err)
			}
		})
	}
}

// Documents are bounded in size, redirects in number, and addresses to public ones.
func TestFetchIsBounded(t *testing.T) {
	t.Parallel()
	var target string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/large":
			_, _ = io.WriteString(w, `{"issuer":"`+strings.Repeat("x", 5<<20)+`"}`)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/elsewhere":
			http.Redirect(w, r, target, http.StatusFound)
		case "/once":
			http.Redirect(w, r, "/ok", http.StatusFound)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	defer web.Close()
	target = "http://localhost:1/x"
	own, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	public := &url.URL{Scheme: "https", Host: "93.184.215.14"}
	for _, tt := range []struct {
		server *url.URL
		path   string
		want   string // in the error; empty for none
	}{
		{own, "/ok", ""},
		{own, "/once", ""},
		{own, "/large", "larger than"},
		{own, "/loop", "redirects"},
		{own, "/elsewhere", "not https"},
		{public, "/ok", "private network"},
	} {
		f := newFetcher(tt.server, sharedBase(), false)
		_, err := f.getDocument(t.Context(), web.URL+tt.path)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("server %s, %s: %v", tt.server, tt.path, err)
		}
	}
	if _, err := newFetcher(public, sharedBase(), true).getDocument(t.Context(), web.URL+"/ok"); err != nil {
		t.Errorf("private addresses are allowed: %v", err)
	}
	if _, err := newFetcher(public, sharedBase(), true).getDocument(t.Context(), "http://a.example/x"); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("http: %v", err)
	}
}

func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "172.16.0.1": true, "192.168.1.1": true, "169.254.169.254": true, "100.64.0.1": true, "0.0.0.0": true,
		"::1": true, "fe80::1": true, "fd00::1": true, "::ffff:10.0.0.1": true, "224.0.0.1": true, "::": true,
		"0.1.2.3": true, "192.0.0.8": true, "198.19.0.1": true, "240.0.0.1": true, "255.255.255.255": true, "64:ff9b::10.0.0.1": true,
		"2002:7f00:1::1": true, "64:ff9b:1::1": true, "64:ff9b::8.8.8.8": false, "2002:808:808::1": false,
		"93.184.215.14": false, "8.8.8.8": false, "2606:4700::1111": false, "::ffff:8.8.8.8": false,
	} {
		if got := isPrivateAddr(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

// The server's own name opens the private network only if all its addresses are there.
func TestPrivateHosts(t *testing.T) {
	t.Parallel()
	private, public := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("8.8.8.8")
	for _, tt := range []struct {
		addrs []netip.Addr
		err   error
		want  bool
	}{
		{[]netip.Addr{private}, nil, true},
		{[]netip.Addr{private, public}, nil, false},
		{nil, nil, false},
		{nil, errors.New("no such host"), false},
	} {
		if got := arePrivate(tt.addrs, tt.err); got != tt.want {
			t.Errorf("%v, %v: %v", tt.addrs, tt.err, got)
		}
	}
}

// The TLS connections of a given transport reach no private address either.
func TestPrivateAddressesOverTLS(t *testing.T) {
	t.Parallel()
	dialed := false
	base := &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
		dialed = true
		return nil, errors.New("dialed")
	}}
	tr, err := NewTransport("https://8.8.8.8/mcp", &Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.fetcher.getDocument(t.Context(), "https://127.0.0.1:1/metadata"); !errors.Is(err, errPrivate) || dialed {
		t.Errorf("%v", err)
	}
}

// The facts in the options replace what the servers say.
func TestServerOptions(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Quirks: []string{"no-metadata"}, Clients: []authtest.Client{{ID: "mine"}}})
	rs := as.Protect(t, okHandler)
	for _, tt := range []struct {
		name     string
		server   Server
		resource string // wanted in the requests
	}{
		{"endpoints", Server{AuthorizationURL: as.URL + "/authorize", TokenURL: as.URL + "/token", Issuer: as.Issuer}, rs.URL},
		{"resource", Server{AuthorizationURL: as.URL + "/authorize", TokenURL: as.URL + "/token", Issuer: as.Issuer, Resource: "urn:other"}, "urn:other"},
		{"no resource", Server{AuthorizationURL: as.URL + "/authorize", TokenURL: as.URL + "/token", Issuer: as.Issuer, OmitResource: true}, ""},
	} {
		before := as.Count("authorize")
		tr, err := NewTransport(rs.URL, &Options{Login: &testLogin{as: as}, Client: Client{ID: "mine"}, Server: tt.server})
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Login(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := as.Requests("authorize")[before].Form.Get("resource"); got != tt.resource {
			t.Errorf("%s: resource %q, want %q", tt.name, got, tt.resource)
		}
	}
}

func TestEntraQuirks(t *testing.T) {
	t.Parallel()
	if q := quirksOf("https://login.microsoftonline.com/tenant/v2.0"); !q.omitResource || !q.assumePKCE || !q.noConsent || !q.refreshScope {
		t.Errorf("%+v", q)
	}
	for _, other := range []string{"https://login.microsoftonline.com.example/x", "https://example.com/login.microsoftonline.com", ""} {
		if q := quirksOf(other); q != (quirks{}) {
			t.Errorf("%s: %+v", other, q)
		}
	}
}
