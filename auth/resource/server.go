package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server protects endpoints: it verifies the token of each request. It is safe for concurrent use.
type Server struct {
	opts       Options
	url        *url.URL
	path       string // of url, escaped, without a "/" at its end
	isLoopback bool   // url names a loopback host
	audiences  []string
	issuers    []*issuer
	cache      *tokenCache
	proofs     *proofLog
	nonces     *nonceSealer
	log        *slog.Logger
	now        func() time.Time
}

// New returns a Server, or an error that names the first mistake in the options. It does not
// contact the issuers.
func New(opts Options) (*Server, error) {
	u, err := opts.checkOptions()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, url: u, path: strings.TrimSuffix(u.EscapedPath(), "/"), isLoopback: httpwire.IsLoopbackHost(u.Hostname()),
		log: opts.Logger, now: time.Now,
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.audiences = append([]string{opts.URL}, opts.Audiences...)
	client := cmp.Or(opts.HTTPClient, defaultClient())
	for _, described := range opts.Issuers {
		i, err := newIssuer(described, client, s)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(s.issuers, func(other *issuer) bool { return other.URL == i.URL }) {
			return nil, fmt.Errorf("resource: the issuer %s is listed twice", i.URL)
		}
		s.issuers = append(s.issuers, i)
	}
	s.cache = newTokenCache()
	s.proofs = newProofLog()
	s.nonces = newNonceSealer(cmp.Or(opts.Keys, new(mcp.Keys)))
	return s, nil
}

// defaultClient returns the client for requests to authorization servers. Its answers are documents
// at addresses of the configuration, which do not move.
func defaultClient() *http.Client {
	return &http.Client{Timeout: fetchTimeout, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		return fmt.Errorf("the server redirects to %s: configure that address if you trust it", next.URL.Redacted())
	}}
}

// Protect returns a handler that passes requests with a valid token to next, and serves the
// protected resource metadata. It passes preflights, which browsers send without a token, to next:
// the transports of this module answer them by their Guard. A stream ends when its token expires.
func (s *Server) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, ok := strings.CutPrefix(r.URL.EscapedPath(), wellKnown); ok {
			s.serveMetadata(w, r, path)
			return
		}
		if isLoginPath(r.URL.Path) {
			httpwire.Refuse(w, http.StatusNotFound, "this server issues no tokens: "+s.metadataURL(r)+" names the authorization server")
			return
		}
		if isPreflight(r) {
			next.ServeHTTP(w, r)
			return
		}
		auth, err := s.authorize(r)
		if err != nil {
			s.answerRefusal(w, r, err)
			return
		}
		ctx := httpwire.WithAuthorization(r.Context(), auth)
		if isStream(r) {
			expiring, cancel := context.WithDeadline(ctx, auth.Token.(*Token).Expires.Add(clockSkew))
			defer cancel()
			ctx = expiring
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// isPreflight reports whether a browser asks, without credentials, if a page may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// isLoginPath reports whether clients look for the metadata of an authorization server at a path.
func isLoginPath(path string) bool {
	return strings.HasPrefix(path, "/.well-known/oauth-authorization-server") || strings.HasPrefix(path, "/.well-known/openid-configuration")
}

// isStream reports whether a request opens a stream that lasts.
func isStream(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	method := r.Header[mcpwire.HeaderMethod]
	return len(method) == 1 && method[0] == mcp.MethodListen
}

// maxToken bounds an access token in bytes.
const maxToken = 16 << 10

// authorize verifies the token of a request.
func (s *Server) authorize(r *http.Request) (*httpwire.Authorization, error) {
	scheme, raw, err := readCredentials(r)
	if err != nil {
		return nil, err
	}
	auth, err := s.findToken(r.Context(), r.RemoteAddr, raw)
	if err != nil {
		return nil, err
	}
	t := auth.Token.(*Token)
	switch {
	case !t.forAllPaths && !s.isForPath(t, r):
		return nil, refuse(codeInvalidToken, fmt.Errorf("the token has the audience %q, the request is for %s", t.Audience, r.URL.Path))
	case scheme == oauth.SchemeDPoP || t.keyThumbprint != "" || s.opts.RequireDPoP:
		if err := s.checkProof(r, scheme, raw, t); err != nil {
			return nil, err
		}
	}
	for _, scope := range s.opts.Scopes {
		if !slices.Contains(t.Scopes, scope) {
			return nil, refuse(codeInsufficientScope, fmt.Errorf("the token of %s lacks the scope %s", auth.Principal.ID, scope))
		}
	}
	return auth, nil
}

// readCredentials returns the scheme, Bearer or DPoP, and the token of a request.
func readCredentials(r *http.Request) (scheme, token string, err error) {
	if r.URL.RawQuery != "" && r.URL.Query().Has("access_token") {
		return "", "", refuse(codeInvalidRequest, errors.New("the query has an access token"))
	}
	values := r.Header["Authorization"]
	switch len(values) {
	case 0:
		return "", "", refuse("", errors.New("no credentials"))
	case 1:
	default:
		return "", "", refuse(codeInvalidRequest, fmt.Errorf("the request has %d Authorization fields", len(values)))
	}
	scheme, token, _ = strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		scheme = "Bearer"
	case strings.EqualFold(scheme, oauth.SchemeDPoP):
		scheme = oauth.SchemeDPoP
	default:
		return "", "", refuse("", errors.New("credentials of another scheme"))
	}
	if token = strings.Trim(token, " "); !isTokenText(token) || len(token) > maxToken {
		return "", "", refuse(codeInvalidRequest, fmt.Errorf("the token has %d bytes or characters that tokens do not have", len(token)))
	}
	return scheme, token, nil
}

// isTokenText reports whether s has the form of a token (b64token of RFC 6750, section 2.1).
func isTokenText(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~+/=", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// isForPath reports whether the audience of a token is the resource that a request is for.
func (s *Server) isForPath(t *Token, r *http.Request) bool {
	resource := s.resourcePath(r)
	return slices.ContainsFunc(t.Audience, func(aud string) bool {
		path, ok := s.pathOfAudience(aud)
		return ok && path == resource
	})
}

// pathOfAudience returns the path of an audience that is a resource of this server.
func (s *Server) pathOfAudience(aud string) (path string, ok bool) {
	u, err := url.Parse(aud)
	if err != nil || u.Scheme != s.url.Scheme || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return "", false
	}
	if !strings.EqualFold(u.Host, s.url.Host) && !(s.isLoopback && samePort(u.Host, s.url)) {
		return "", false
	}
	path = strings.TrimSuffix(u.EscapedPath(), "/")
	_, ok = s.pathBelow(path)
	return path, ok
}

// isForUs reports whether one audience is this server or a path of it. forAll reports that it is
// the whole server.
func (s *Server) isForUs(audience []string) (ok, forAll bool) {
	for _, aud := range audience {
		path, below := s.pathOfAudience(aud)
		if slices.Contains(s.audiences, aud) || below && path == s.path {
			return true, true
		}
		ok = ok || below
	}
	return ok, false
}
