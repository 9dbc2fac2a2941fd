package authtest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// tokenRequest is a request to the token endpoint of a client that has authenticated itself.
type tokenRequest struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	form   url.Values
	client *Client
	key    string // thumbprint of the key in the DPoP proof; empty without one

	issuedType string // issued_token_type of the answer; empty for none
}

// rotationGrace is how long a used refresh token is accepted with the quirk "rotation-grace".
const rotationGrace = 30 * time.Minute

func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	t := &tokenRequest{s: s, w: w, r: r, form: r.PostForm}
	if r.Method != http.MethodPost {
		t.refuse("invalid_request", "want a POST")
		return
	}
	c, ok := s.authenticate(r)
	switch {
	case !ok && s.has("lost-client-html"):
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("<html><body>Something went wrong</body></html>"))
		return
	case !ok:
		w.Header().Set("WWW-Authenticate", "Basic")
		t.refuseStatus(http.StatusUnauthorized, "invalid_client", "the client is unknown, or its credentials are wrong")
		return
	}
	t.client = c
	key, err := readProof(r, s.URL+r.URL.Path, "")
	if err != nil {
		t.refuse("invalid_dpop_proof", err.Error())
		return
	}
	t.key = key
	grantType := s.grants[lastPart(t.form.Get("grant_type"))]
	if grantType == nil {
		t.refuse("unsupported_grant_type", "unknown grant_type "+t.form.Get("grant_type"))
		return
	}
	if code, description := s.checkResources(t.form["resource"]); code != "" {
		t.refuse(code, description)
		return
	}
	grantType(t)
}

// authenticate returns the client of a request. ok is false if its credentials are wrong.
func (s *Server) authenticate(r *http.Request) (c *Client, ok bool) {
	method, id, secret := "none", r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	if r.PostForm.Has("client_secret") {
		method = "client_secret_post"
	}
	if user, password, found := r.BasicAuth(); found {
		method = "client_secret_basic"
		var err1, err2 error
		id, err1 = url.QueryUnescape(user)
		secret, err2 = url.QueryUnescape(password)
		if err1 != nil || err2 != nil || r.PostForm.Has("client_secret") {
			return nil, false
		}
	}
	c = s.findClient(id)
	switch {
	case c == nil:
		return nil, false
	case c.Secret == "" && method != "none", secret != c.Secret:
		return nil, false
	case c.Method != "" && c.Method != method:
		return nil, false
	}
	return c, true
}

// refuse answers with an error of status 400.
func (t *tokenRequest) refuse(code, description string) {
	t.refuseStatus(http.StatusBadRequest, code, description)
}

func (t *tokenRequest) refuseStatus(status int, code, description string) {
	if t.s.has("ok-false") {
		writeJSON(t.w, http.StatusOK, map[string]any{"ok": false, "error": code})
		return
	}
	writeError(t.w, status, code, description)
}

// grantCode exchanges an authorization code. A second use revokes the tokens of the first one.
func (s *Server) grantCode(t *tokenRequest) {
	code := t.form.Get("code")
	s.mu.Lock()
	g := s.codes[code]
	used := g != nil && !g.used.IsZero()
	if g != nil {
		g.used = s.now()
	}
	if used {
		s.revokeFamily(g.family)
	}
	now := s.now()
	s.mu.Unlock()
	sum := sha256.Sum256([]byte(t.form.Get("code_verifier")))
	switch {
	case g == nil || used || now.After(g.expires):
		t.refuse("invalid_grant", "the code is unknown, used or expired")
	case g.client.ID != t.client.ID:
		t.refuse("invalid_grant", "the code belongs to another client")
	case g.redirect != t.form.Get("redirect_uri"):
		t.refuse("invalid_grant", "redirect_uri differs from the authorization request")
	case base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		t.refuse("invalid_grant", "code_verifier does not match code_challenge")
	case !containsAll(g.resources, t.form["resource"]):
		t.refuse("invalid_target", "resource differs from the authorization request")
	case t.refuseKey(g):
	default:
		t.answer(g, g.scopes, true)
	}
}

// grantRefresh exchanges a refresh token for a new pair. A second use revokes the family.
func (s *Server) grantRefresh(t *tokenRequest) {
	token := t.form.Get("refresh_token")
	rotates, grace := !s.has("no-rotation"), s.has("rotation-grace")
	s.mu.Lock()
	g := s.refresh[token]
	reused := g != nil && !g.used.IsZero() && !(grace && s.now().Sub(g.used) < rotationGrace)
	if reused {
		s.revokeFamily(g.family)
	}
	valid := g != nil && !reused && g.client.ID == t.client.ID
	early := valid && s.quirks["refresh-early-refused"] && s.hasFreshAccess(g.family, 5*time.Minute)
	s.mu.Unlock()
	scopes := strings.Fields(t.form.Get("scope"))
	switch {
	case !valid || s.has("refresh-invalid"):
		t.refuse("invalid_grant", "the refresh token is unknown, used or revoked")
		return
	case early:
		t.refuse("invalid_request", "the access token is still valid")
		return
	case len(scopes) == 0 && s.has("refresh-wants-scope"):
		t.refuse("invalid_request", "AADSTS90009: the parameter scope is missing")
		return
	case !containsAll(g.scopes, scopes):
		t.refuse("invalid_scope", "the scope was not granted")
		return
	case !containsAll(g.resources, t.form["resource"]):
		t.refuse("invalid_target", "resource differs from the authorization request")
		return
	case t.refuseKey(g):
		return
	}
	if len(scopes) == 0 {
		scopes = g.scopes
	}
	if rotates && !s.useRefresh(token, grace) {
		t.refuse("invalid_grant", "the refresh token was used at the same time")
		return
	}
	t.answer(g, scopes, rotates)
}

// useRefresh marks a refresh token as used. It returns false, and revokes the family, if another
// request has used it.
func (s *Server) useRefresh(token string, grace bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.refresh[token]
	if g == nil || !g.used.IsZero() && !grace {
		if g != nil {
			s.revokeFamily(g.family)
		}
		return false
	}
	if g.used.IsZero() {
		g.used = s.now()
	}
	return true
}

// grantClientCredentials gives a token to the client itself.
func (s *Server) grantClientCredentials(t *tokenRequest) {
	scopes := strings.Fields(t.form.Get("scope"))
	if t.client.Secret == "" {
		t.refuse("unauthorized_client", "want a client with a secret")
		return
	}
	if code, description := s.checkScopes(scopes); code != "" {
		t.refuse(code, description)
		return
	}
	g := &grant{client: t.client, scopes: scopes, resources: t.form["resource"], user: t.client.ID, family: newSecret("family")}
	t.answer(g, scopes, false)
}

// answer issues tokens and writes them. A refresh token is added only if withRefresh is true and
// the grant allows one.
func (t *tokenRequest) answer(g *grant, scopes []string, withRefresh bool) {
	s := t.s
	bound := *g
	bound.key = t.key
	access, lifetime := s.issueAccess(&bound, scopes, t.form["resource"])
	body := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(lifetime.Seconds())}
	if t.key != "" {
		body["token_type"] = oauth.SchemeDPoP
	}
	if slices.Contains(scopes, "openid") {
		body["id_token"] = s.signIdentity(g)
	}
	separator := " "
	for quirk, change := range map[string]func(){
		"token-type-user":  func() { body["token_type"] = "user" },
		"token-type-lower": func() { body["token_type"] = "bearer" },
		"expires-string":   func() { body["expires_in"] = strconv.Itoa(int(lifetime.Seconds())) },
		"expires-absent":   func() { delete(body, "expires_in") },
		"comma-scopes":     func() { separator = "," },
		"ok-false":         func() { body["ok"] = true },
	} {
		if s.has(quirk) {
			change()
		}
	}
	if t.issuedType != "" {
		body["issued_token_type"] = t.issuedType
	}
	if len(scopes) > 0 {
		body["scope"] = strings.Join(scopes, separator)
	}
	if withRefresh && g.offline {
		token := newSecret("refresh")
		next := *g
		next.used = time.Time{}
		if next.key = ""; next.client.Secret == "" {
			next.key = t.key // a client without a secret is known by its key only (RFC 9449, section 5)
		}
		s.mu.Lock()
		s.refresh[token] = &next
		s.mu.Unlock()
		body["refresh_token"] = token
	}
	if s.has("form-answers") && !strings.Contains(t.r.Header.Get("Accept"), "json") {
		t.writeForm(body)
		return
	}
	writeJSON(t.w, http.StatusOK, body)
}

func (t *tokenRequest) writeForm(body map[string]any) {
	form := url.Values{}
	for name, value := range body {
		switch v := value.(type) {
		case string:
			form.Set(name, v)
		case int:
			form.Set(name, strconv.Itoa(v))
		}
	}
	t.w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
	_, _ = t.w.Write([]byte(form.Encode()))
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}
