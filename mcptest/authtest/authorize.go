package authtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// grant is what a user has allowed: the state behind an authorization code or a refresh token.
type grant struct {
	client    *Client
	redirect  string
	challenge string // of PKCE
	scopes    []string
	resources []string
	user      string
	audience  string // the parameter audience
	family    string // the same for all tokens of one login
	key       string // thumbprint of the DPoP key that may use it; empty for each
	offline   bool   // a refresh token is given
	used      time.Time
	expires   time.Time
}

const codeLifetime = time.Minute

// serveAuthorize approves a request for authorization and redirects the browser.
func (s *Server) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	f := r.Form
	c := s.findClient(f.Get("client_id"))
	switch {
	case c == nil && s.has("lost-client-page"):
		writeError(w, http.StatusUnprocessableEntity, "invalid_client", "the client does not exist")
		return
	case c == nil:
		http.Error(w, "unknown client_id", http.StatusBadRequest)
		return
	case !s.allowsRedirect(c, f.Get("redirect_uri")):
		http.Error(w, "redirect_uri is not registered: "+f.Get("redirect_uri"), http.StatusBadRequest)
		return
	}
	answer := url.Values{}
	if f.Has("state") {
		answer.Set("state", f.Get("state"))
	}
	s.addIssuer(answer)
	if code, description := s.checkAuthorization(f); code != "" {
		answer.Set("error", code)
		answer.Set("error_description", description)
	} else {
		answer.Set("code", s.newCode(c, f))
	}
	u, err := url.Parse(f.Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	query := u.Query()
	for name, values := range answer {
		query[name] = values
	}
	u.RawQuery = query.Encode()
	http.Redirect(w, r, u.String(), http.StatusFound)
}

// addIssuer adds the parameter iss (RFC 9207).
func (s *Server) addIssuer(answer url.Values) {
	switch {
	case s.has("iss-missing"), s.has("iss-none"):
	case s.has("iss-wrong"):
		answer.Set("iss", "https://attacker.example")
	case s.has("iss-slash"):
		answer.Set("iss", s.Issuer+"/")
	default:
		answer.Set("iss", s.Issuer)
	}
}

// checkAuthorization returns the error of a request for authorization, or "".
func (s *Server) checkAuthorization(f url.Values) (code, description string) {
	switch {
	case s.has("deny"):
		return "access_denied", "the user denied the request"
	case f.Get("response_type") != "code":
		return "unsupported_response_type", "want response_type=code"
	case f.Get("code_challenge_method") != "S256" || len(f.Get("code_challenge")) != 43:
		return "invalid_request", "want a code_challenge with code_challenge_method=S256"
	case s.has("prompt-refused") && f.Get("prompt") == "consent":
		return "invalid_request", "prompt=consent is not allowed"
	}
	if code, description := s.checkResources(f["resource"]); code != "" {
		return code, description
	}
	return s.checkScopes(strings.Fields(f.Get("scope")))
}

// checkResources returns the error of the parameters resource, or "".
func (s *Server) checkResources(resources []string) (code, description string) {
	for _, resource := range resources {
		u, err := url.Parse(resource)
		switch {
		case s.has("resource-refused"):
			return "invalid_target", "AADSTS9010010: the parameter resource is not supported"
		case err != nil || !u.IsAbs() || strings.Contains(resource, "#"):
			return "invalid_target", "resource must be an absolute URI without a fragment"
		case len(s.options.Resources) > 0 && !slices.Contains(s.options.Resources, resource):
			return "invalid_target", "unknown resource " + resource
		case s.has("resource-listed") && !s.isProtected(resource):
			return "invalid_target", "the resource is not on the list: " + resource
		}
	}
	return "", ""
}

// checkScopes returns the error of the parameter scope, or "".
func (s *Server) checkScopes(scopes []string) (code, description string) {
	for _, scope := range scopes {
		refused := scope == "offline_access" && s.has("offline-refused")
		if refused || scope != "offline_access" && len(s.options.Scopes) > 0 && !slices.Contains(s.options.Scopes, scope) {
			return "invalid_scope", "the scope " + scope + " is not allowed"
		}
	}
	return "", ""
}

func (s *Server) newCode(c *Client, f url.Values) string {
	g := &grant{
		client: c, redirect: f.Get("redirect_uri"), challenge: f.Get("code_challenge"), audience: f.Get("audience"), key: f.Get("dpop_jkt"),
		scopes: strings.Fields(f.Get("scope")), resources: f["resource"], user: s.user(), family: newSecret("family"),
		expires: s.Now().Add(codeLifetime),
	}
	g.offline = (!s.has("refresh-offline-scope") || slices.Contains(g.scopes, "offline_access")) &&
		(!s.has("refresh-access-type") || f.Get("access_type") == "offline")
	code := newSecret("code")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = g
	return code
}

func (s *Server) user() string {
	if s.options.User != "" {
		return s.options.User
	}
	return "alice"
}

// Approve plays a user who opens an authorization URL. It returns the URL to which the server
// redirects the browser, without visiting it. An error page of the server is an error.
func (s *Server) Approve(ctx context.Context, authorizationURL string) (*url.URL, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL, nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusFound {
		page, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("the authorization endpoint answered %s: %s", response.Status, page)
	}
	return response.Location()
}
