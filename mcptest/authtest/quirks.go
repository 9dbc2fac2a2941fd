package authtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/authquirks"
)

// quirks describes each quirk by its name.
var quirks = map[string]string{
	"no-metadata":          "there is no metadata; the endpoints are at the default paths of 2025-03-26",
	"oauth-only":           "there is no OpenID Connect configuration",
	"openid-only":          "there is only the OpenID Connect configuration, in all of its places",
	"openid-appended-only": "there is only the OpenID Connect configuration below the issuer's path",
	"wellknown-400":        "unknown well-known URLs answer 400",
	"wellknown-403":        "unknown well-known URLs answer 403, as content networks do",
	"wellknown-502":        "unknown well-known URLs answer 502",
	"wellknown-html":       "unknown well-known URLs answer 200 with a web page",
	"issuer-slash":         "the issuer ends in a slash",
	"issuer-template":      "the issuer in the metadata has a part {tenantid}",
	"issuer-other":         "the issuer in the metadata has another host",

	"no-documents":          "client ID metadata documents are not supported",
	"no-registration":       "dynamic registration is not supported",
	"registration-refused":  "registration answers 403 with a text, unless the client's name is on a list",
	"registration-token":    "registration answers 401, because it wants a token",
	"registration-secret":   "registration gives a secret to a client that asked for none",
	"registration-managed":  "registration gives an address and a token with which the client can delete itself (RFC 7592)",
	"registration-expires":  "secrets of registered clients expire after an hour",
	"redirect-exact":        "the port of a loopback redirect URI counts",
	"method-unsaid":         "the metadata says no method of authentication but none; the token endpoint wants client_secret_post",
	"lost-client-page":      "an unknown client gets status 422 with JSON from the authorization endpoint",
	"lost-client-html":      "an unknown client gets status 500 with a web page from the token endpoint",
	"no-challenge-methods":  "the metadata has no code_challenge_methods_supported",
	"script-endpoint":       "the authorization endpoint is a javascript: URL",
	"deny":                  "the user denies each login",
	"prompt-refused":        "prompt=consent is refused",
	"resource-refused":      "the parameter resource is refused",
	"resource-listed":       "the parameter resource must be the address of a protected resource, to the letter",
	"resource-ignored":      "the audience is the same for each resource",
	"audience-empty":        "tokens have an empty audience",
	"audience-parameter":    "tokens are opaque unless the parameter audience is sent",
	"offline-refused":       "the scope offline_access is refused with invalid_scope",
	"refresh-offline-scope": "a refresh token is given only for the scope offline_access",
	"refresh-access-type":   "a refresh token is given only for access_type=offline",

	"iss-missing":      "iss is advertised and not sent",
	"iss-none":         "iss is neither advertised nor sent",
	"iss-unadvertised": "iss is sent and not advertised",
	"iss-wrong":        "iss is the issuer of another server",
	"iss-slash":        "iss has a slash at its end that the issuer does not have",

	"no-rotation":           "a refresh token stays valid, and the answer to a refresh has none",
	"rotation-grace":        "a used refresh token stays valid for 30 minutes",
	"refresh-invalid":       "refresh tokens are invalid at once",
	"refresh-early-refused": "a refresh is refused while more than five minutes of the access token are left",
	"refresh-wants-scope":   "a refresh without scope is refused",
	"form-answers":          "the token endpoint answers as a form, unless JSON is asked for by Accept",
	"ok-false":              "errors of the token endpoint have status 200 and the member ok",
	"token-type-user":       "the token type is user",
	"token-type-lower":      "the token type is bearer",
	"comma-scopes":          "granted scopes are separated by commas",
	"expires-string":        "expires_in is a string",
	"expires-absent":        "expires_in is absent",
	"plain-type":            "the type of access tokens is JWT",
	"no-device":             "the device flow is not supported",
	"slow-down":             "the first poll of a device flow is answered with slow_down",

	"resource-elsewhere": "the protected resource names another host as its resource",
	"resource-origin":    "the protected resource names its origin as its resource",
	"resource-root":      "the metadata of the protected resource is at the root only",
	"challenge-bare":     "a refused request has no WWW-Authenticate",
	"challenge-plain":    "WWW-Authenticate does not name the metadata",
	"challenge-per-tool": "only calls of tools need a token; WWW-Authenticate names metadata of the tool, which names the tool as its resource",
}

func resolveQuirks(names []string) (map[string]bool, error) {
	on := map[string]bool{}
	for _, name := range names {
		switch {
		case quirks[name] != "":
			on[name] = true
		case authquirks.Servers[name] != "":
			for _, quirk := range strings.Fields(authquirks.Servers[name]) {
				on[quirk] = true
			}
		default:
			return nil, fmt.Errorf("no quirk is named %q: want %s, or a server: %s", name,
				strings.Join(slices.Sorted(maps.Keys(quirks)), ", "), strings.Join(slices.Sorted(maps.Keys(authquirks.Servers)), ", "))
		}
	}
	return on, nil
}
