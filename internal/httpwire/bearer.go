package httpwire

import (
	"net/http"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// BearerToken returns the token of the request's Authorization field, or "" without one (RFC 6750,
// section 2.1).
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// RefuseUnauthorized answers a request without a valid token with status 401 and the reason.
//
// Clients react to 401 by looking for an authorization server: they read the well-known addresses,
// and if these are missing, register at /register. These paths answer 404 with the same reason, so
// that the client shows it instead of beginning a login that cannot succeed.
func RefuseUnauthorized(w http.ResponseWriter, r *http.Request, reason string) {
	if isLoginPath(r.URL.Path) {
		Refuse(w, http.StatusNotFound, reason)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="`+Realm+`"`) // without resource_metadata: there is no login
	Refuse(w, http.StatusUnauthorized, reason)
}

// Realm is the realm of dowel's own refusals.
const Realm = "dowel"

var challengeParameter = lazyregexp.New(`([A-Za-z_-]+)=(?:"([^"]*)"|([^\s",]+))`)

// ChallengeParam returns a parameter of the WWW-Authenticate field, or "".
func ChallengeParam(h http.Header, name string) string {
	for _, challenge := range h.Values("Www-Authenticate") {
		for _, m := range challengeParameter().FindAllStringSubmatch(challenge, -1) {
			if strings.EqualFold(m[1], name) {
				return m[2] + m[3]
			}
		}
	}
	return ""
}

// SentCredentials reports whether the request of a response had credentials: an Authorization
// field, a cookie or a user in its URL.
func SentCredentials(resp *http.Response) bool {
	r := resp.Request
	return r != nil && (r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" || r.URL != nil && r.URL.User != nil)
}

// isLoginPath reports whether OAuth clients look for an authorization server at a path
// (basic/authorization: discovery, and the default endpoints of revision 2025-03-26).
func isLoginPath(path string) bool {
	switch path {
	case "/authorize", "/token", "/register":
		return true
	}
	return strings.HasPrefix(path, "/.well-known/") || strings.Contains(path, "/.well-known/oauth-") || strings.Contains(path, "/.well-known/openid-")
}
