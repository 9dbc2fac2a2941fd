// Package authtest is a small OAuth authorization server for tests. It approves each login at
// once, so a test plays the user with [Server.Approve] or an HTTP client that follows redirects.
//
//	func TestLogin(t *testing.T) {
//		as := authtest.Start(t, &authtest.Options{Scopes: []string{"notes:read"}})
//		rs := as.Protect(t, handler) // an MCP server behind it, at rs.URL
//		…
//		as.Advance(2 * time.Hour) // the access token has expired
//		…
//		if n := as.Count("refresh_token"); n != 1 {
//			t.Errorf("%d refreshes, want 1", n)
//		}
//	}
//
// It supports the metadata of RFC 8414 and OpenID Connect, dynamic registration (RFC 7591), client
// ID metadata documents, authorization codes with PKCE, resource indicators and iss, refresh tokens
// that rotate, client credentials, the device flow (RFC 8628), token exchange (RFC 8693), also in
// Entra's form and for an ID-JAG, introspection (RFC 7662) and revocation (RFC 7009). Access tokens
// are JWTs (RFC 9068) signed with ES256. A token that is asked for with a DPoP proof (RFC 9449) is
// bound to its key. The scope openid adds an ID token. A refresh token that is used a second time
// revokes its family: all tokens of the same login.
//
// The behaviour of real servers that differs from the specifications is switched on by name, see
// [Options].Quirks.
package authtest

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options are the options of [Start]. The zero value is a server that follows the specifications.
type Options struct {
	// Path is the path of the issuer, such as "/tenant1". Empty means an issuer without a path.
	Path string
	// Quirks are names of quirks, or of real servers, which select the quirks of that server. The
	// table at the top of quirks.go describes them.
	Quirks []string
	// Scopes is scopes_supported. A request for another scope is refused with invalid_scope. If it
	// is empty, each scope is granted and the metadata has no scopes_supported.
	Scopes []string
	// Resources are the values of the parameter resource that are accepted. Empty accepts each.
	Resources []string
	// Clients are registered before the start.
	Clients []Client
	// User is the subject of the tokens. Empty means "alice".
	User string
	// IdentityProvider is the server with ID-JAGs that this one accepts. nil accepts none.
	IdentityProvider *Server
	// Opaque makes access tokens that only introspection can read.
	Opaque bool
	// OnRequest is called before each request is answered, concurrently. It may answer the request
	// itself and then returns true. [Server.Count] lists the names of endpoints.
	OnRequest func(endpoint string, w http.ResponseWriter, r *http.Request) bool
}

// Client is a registered client.
type Client struct {
	ID, Secret string
	// Method is the token_endpoint_auth_method: none, client_secret_basic or client_secret_post.
	// Empty means none without a secret, and either of the other two with one.
	Method string
	// RedirectURIs are the redirect URIs that the client may use. The port of a loopback address
	// does not count, except with the quirk "redirect-exact". Empty allows every loopback address.
	RedirectURIs []string
	Name         string
	// Registration is the request of a client that was registered dynamically, or its document.
	Registration map[string]any
}

// Request is a request that an endpoint has received.
type Request struct {
	Method string
	Header http.Header
	Form   url.Values // the query and the body
}

// Server is a running authorization server. Its methods may be called concurrently.
type Server struct {
	// URL is the server's origin, without a slash at its end.
	URL string
	// Issuer is the identifier in the metadata.
	Issuer string

	options   Options
	mux       *http.ServeMux
	grants    map[string]func(*tokenRequest) // by the grant_type's last part
	documents map[string]map[string]any      // client ID metadata documents by URL; guarded by mu

	mu       sync.Mutex // guards everything below
	quirks   map[string]bool
	offset   time.Duration // of the clock
	requests map[string][]Request
	clients  map[string]*Client
	codes    map[string]*grant // by authorization code
	devices  map[string]*device
	refresh  map[string]*grant // by refresh token
	access   map[string]*accessToken
	keys     []*signingKey // the newest one last

	protected []string // the identifiers of the resources that Protect has started
}

// Start starts a server on a loopback address. The server ends with the test. A nil o means the
// zero value. The test fails if a quirk does not exist.
func Start(t testing.TB, o *Options) *Server {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	s := &Server{
		options: *o, mux: http.NewServeMux(), documents: map[string]map[string]any{}, requests: map[string][]Request{},
		clients: map[string]*Client{}, codes: map[string]*grant{}, devices: map[string]*device{}, refresh: map[string]*grant{},
		access: map[string]*accessToken{},
	}
	for _, c := range o.Clients {
		s.clients[c.ID] = &c
	}
	if err := s.setQuirks(o.Quirks...); err != nil {
		t.Fatal(err)
	}
	s.RotateKey()
	s.addRoutes()
	listening := httptest.NewUnstartedServer(s)
	s.URL = "http://" + listening.Listener.Addr().String()
	s.Issuer = s.URL + o.Path
	if s.has("issuer-slash") {
		s.Issuer += "/"
	}
	listening.Start()
	t.Cleanup(listening.Close)
	return s
}

// ServeHTTP answers a request of a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) addRoutes() {
	path := s.options.Path
	s.grants = map[string]func(*tokenRequest){
		"authorization_code": s.grantCode, "refresh_token": s.grantRefresh,
		"client_credentials": s.grantClientCredentials, "device_code": s.grantDevice,
		"token-exchange": s.grantExchange, "jwt-bearer": s.grantAssertion,
	}
	s.addMetadataRoutes()
	s.handle(path+"/register", "register", s.serveRegister)
	s.handle(path+"/registered/", "registered", s.serveRegistered)
	s.handle(path+"/authorize", "authorize", s.serveAuthorize)
	s.handle(path+"/token", "token", s.serveToken)
	s.handle(path+"/introspect", "introspect", s.serveIntrospect)
	s.handle(path+"/revoke", "revoke", s.serveRevoke)
	s.handle(path+"/jwks", "jwks", s.serveKeys)
	s.handle(path+"/device", "device", s.serveDevice)
	s.handle(path+"/activate", "activate", s.serveActivate)
}

// handle adds an endpoint and records its requests.
func (s *Server) handle(path, endpoint string, serve http.HandlerFunc) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		name := endpoint
		s.record(name, r)
		if name == "token" {
			name = lastPart(r.Form.Get("grant_type"))
			s.record(name, r)
		}
		if s.options.OnRequest != nil && s.options.OnRequest(name, w, r) {
			return
		}
		serve(w, r)
	})
}

func (s *Server) record(endpoint string, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[endpoint] = append(s.requests[endpoint], Request{Method: r.Method, Header: r.Header.Clone(), Form: cloneForm(r.Form)})
}

// Count returns how many requests an endpoint has received: metadata, register,
// registered, authorize, token, introspect, revoke, jwks, device or activate. A grant counts the
// requests of the token endpoint for it: authorization_code, refresh_token, client_credentials,
// device_code, token-exchange or jwt-bearer.
func (s *Server) Count(endpoint string) int { return len(s.Requests(endpoint)) }

// Requests returns the requests that an endpoint has received, in their order. [Server.Count]
// lists the names.
func (s *Server) Requests(endpoint string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[endpoint])
}

// Now returns the time of the server's clock.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// now is Now for a caller that holds mu.
func (s *Server) now() time.Time { return time.Now().Add(s.offset) }

// Advance moves the server's clock forward, or back if d is negative.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// setQuirks replaces the quirks. It returns an error if one does not exist.
func (s *Server) setQuirks(names ...string) error {
	quirks, err := resolveQuirks(names)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quirks = quirks
	return nil
}

// has reports whether a quirk is switched on. It panics if the quirk does not exist.
func (s *Server) has(quirk string) bool {
	if quirks[quirk] == "" {
		panic("authtest: unknown quirk " + quirk)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quirks[quirk]
}

// newSecret returns a random text of 128 bits with a prefix that tells its kind.
func newSecret(kind string) string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return kind + "-" + base64.RawURLEncoding.EncodeToString(b[:])
}

// lastPart returns the part of a URN after its last colon.
func lastPart(text string) string { return text[strings.LastIndexByte(text, ':')+1:] }

func cloneForm(form url.Values) url.Values {
	c := url.Values{}
	for name, values := range form {
		c[name] = slices.Clone(values)
	}
	return c
}
