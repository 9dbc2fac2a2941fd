package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// accessToken is an issued access token.
type accessToken struct {
	client   string
	user     string
	family   string // identifies the login; all its tokens are revoked together
	scopes   []string
	audience []string
	key      string // thumbprint of the key that uses it; empty for a bearer token
	issued   time.Time
	expires  time.Time
	revoked  bool
}

type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
}

// RotateKey makes a new key, which signs all later tokens. The JWKS still contains the older keys.
func (s *Server) RotateKey() {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no random numbers
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, &signingKey{id: newSecret("key"), private: private})
}

// Sign returns a JWT with the given claims, signed with the newest key. The header has alg, kid
// and the type at+jwt; header adds and replaces members, and a nil value removes one.
func (s *Server) Sign(header, claims map[string]any) string {
	s.mu.Lock()
	key := s.keys[len(s.keys)-1]
	s.mu.Unlock()
	all := map[string]any{"alg": "ES256", "kid": key.id, "typ": "at+jwt"}
	maps.Copy(all, header)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	text := encodePart(all) + "." + encodePart(claims)
	sum := sha256.Sum256([]byte(text))
	x, y, err := ecdsa.Sign(rand.Reader, key.private, sum[:])
	if err != nil {
		panic(err) // the system has no random numbers
	}
	var signature [64]byte
	x.FillBytes(signature[:32])
	y.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature[:])
}

func encodePart(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a test gave a value that JSON does not have
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// accessLifetime is how long an access token is valid.
const accessLifetime = time.Hour

// issueAccess makes an access token for a grant. Without resources it uses the resources of the
// grant.
func (s *Server) issueAccess(g *grant, scopes, resources []string) (token string, lifetime time.Duration) {
	if len(resources) == 0 {
		resources = g.resources
	}
	now := s.Now()
	a := &accessToken{client: g.client.ID, user: g.user, family: g.family, scopes: scopes, audience: slices.Clone(resources),
		key: g.key, issued: now, expires: now.Add(accessLifetime)}
	switch {
	case s.has("resource-ignored"):
		a.audience = []string{"2b1d57c5-0000-4000-8000-000000000000"}
	case s.has("audience-empty"):
		a.audience = nil
	case g.audience != "":
		a.audience = []string{g.audience}
	}
	if s.options.Opaque || s.has("audience-parameter") && g.audience == "" {
		token = newSecret("access")
	} else {
		token = s.signAccess(a)
	}
	s.mu.Lock()
	s.access[token] = a
	s.mu.Unlock()
	return token, accessLifetime
}

func (s *Server) signAccess(a *accessToken) string {
	claims := s.describeToken(a)
	claims["jti"] = newSecret("jwt")
	if s.has("plain-type") {
		return s.Sign(map[string]any{"typ": "JWT"}, claims)
	}
	return s.Sign(nil, claims)
}

// signIdentity makes an ID token of OpenID Connect for a grant.
func (s *Server) signIdentity(g *grant) string {
	now := s.Now()
	return s.Sign(map[string]any{"typ": "JWT"}, map[string]any{
		"iss": s.Issuer, "sub": g.user, "aud": g.client.ID, "iat": now.Unix(), "exp": now.Add(accessLifetime).Unix(),
	})
}

// describeToken returns the claims of an access token, for a JWT and for introspection.
func (s *Server) describeToken(a *accessToken) map[string]any {
	claims := map[string]any{"iss": s.Issuer, "sub": a.user, "client_id": a.client, "iat": a.issued.Unix(), "exp": a.expires.Unix()}
	if len(a.scopes) > 0 {
		claims["scope"] = strings.Join(a.scopes, " ")
	}
	if a.key != "" {
		claims["cnf"] = map[string]any{"jkt": a.key}
	}
	switch len(a.audience) {
	case 0:
		claims["aud"] = []string{}
	case 1:
		claims["aud"] = a.audience[0]
	default:
		claims["aud"] = a.audience
	}
	return claims
}

// IssueToken returns an access token of the server's user for a resource, without a login.
func (s *Server) IssueToken(resource string, scopes ...string) string {
	token, _ := s.issueAccess(&grant{client: &Client{ID: "test"}, user: s.user(), family: newSecret("family")}, scopes, []string{resource})
	return token
}

// serveKeys writes the public keys as a JWKS, the newest one first.
func (s *Server) serveKeys(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	known := slices.Clone(s.keys)
	s.mu.Unlock()
	slices.Reverse(known)
	var keys []map[string]any
	for _, k := range known {
		point, err := k.private.PublicKey.Bytes()
		if err != nil {
			panic(err) // the key was made on a supported curve
		}
		keys = append(keys, map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": k.id,
			"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:]),
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"keys": keys})
}

// findAccess returns an access token that is valid now, or nil.
func (s *Server) findAccess(token string) *accessToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.access[token]
	if a == nil || a.revoked || s.now().After(a.expires) {
		return nil
	}
	return a
}

// hasFreshAccess reports whether a login has an access token that stays valid for longer than than.
// The caller holds mu.
func (s *Server) hasFreshAccess(family string, than time.Duration) bool {
	for _, a := range s.access {
		if a.family == family && !a.revoked && a.expires.Sub(s.now()) > than {
			return true
		}
	}
	return false
}

// revokeFamily revokes all tokens of a login. The caller holds mu.
func (s *Server) revokeFamily(family string) {
	for token, g := range s.refresh {
		if g.family == family {
			delete(s.refresh, token)
		}
	}
	for _, a := range s.access {
		if a.family == family {
			a.revoked = true
		}
	}
}

// Revoke revokes all access tokens and refresh tokens if tokens is true. If clients is true, it
// removes the clients that were registered dynamically, as servers do that clean up.
func (s *Server) Revoke(tokens, clients bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tokens {
		clear(s.refresh)
		for _, a := range s.access {
			a.revoked = true
		}
	}
	for id, c := range s.clients {
		if clients && c.Registration != nil {
			delete(s.clients, id)
		}
	}
}

// serveIntrospect writes the claims of a token (RFC 7662). Only a client with a secret may ask.
func (s *Server) serveIntrospect(w http.ResponseWriter, r *http.Request) {
	c, ok := s.authenticate(r)
	if !ok || c.Secret == "" {
		writeError(w, http.StatusUnauthorized, "invalid_client", "want a client with a secret")
		return
	}
	a := s.findAccess(r.PostForm.Get("token"))
	if a == nil {
		writeJSON(w, http.StatusOK, map[string]any{"active": false})
		return
	}
	claims := s.describeToken(a)
	claims["active"], claims["token_type"] = true, "Bearer"
	if a.key != "" {
		claims["token_type"] = oauth.SchemeDPoP
	}
	writeJSON(w, http.StatusOK, claims)
}

// serveRevoke revokes a token (RFC 7009). With a refresh token, it revokes all tokens of that
// login.
func (s *Server) serveRevoke(w http.ResponseWriter, r *http.Request) {
	c, ok := s.authenticate(r)
	if !ok {
		writeError(w, http.StatusUnauthorized, "invalid_client", "the client is unknown, or its credentials are wrong")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := r.PostForm.Get("token")
	if g := s.refresh[token]; g != nil && g.client.ID == c.ID {
		s.revokeFamily(g.family)
	}
	if a := s.access[token]; a != nil && a.client == c.ID {
		a.revoked = true
	}
	w.WriteHeader(http.StatusOK)
}
