package resource

import (
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
	"github.com/dowel-mcp/dowel/mcp"
)

// Options configure a [Server]. URL and Issuers are required.
type Options struct {
	// URL is the address of the MCP endpoint as clients know it, with the path: also behind a
	// proxy. It is the resource for which clients ask tokens. Paths below it are resources too, so
	// one Server can protect several endpoints. A token for URL is valid for all of them, a token
	// for a path below it is valid for that path only. If URL names a loopback host, its other
	// names are the same address.
	URL string
	// Issuers are the authorization servers that may issue tokens for this server, the preferred
	// one first.
	Issuers []Issuer
	// Audiences are values of aud that mean this server, besides URL: for authorization servers
	// that ignore the resource parameter and put an id of their own there.
	Audiences []string
	// Scopes are the scopes that every request needs. Scopes of single tools are options of the
	// tools.
	Scopes []string
	// ScopesSupported are the scopes that clients should ask for if no challenge names any. nil
	// means Scopes. It should be the least set that is useful.
	ScopesSupported []string
	// ImpliedScopes lists the scopes that each scope includes, such as "notes:write":
	// {"notes:read"}.
	ImpliedScopes map[string][]string
	// Name and Documentation, a URL, describe the server to people.
	Name, Documentation string
	// OfferDPoP invites clients to bind their tokens to a key (RFC 9449). Tokens that are bound
	// need a proof in any case.
	OfferDPoP bool
	// RequireDPoP refuses tokens that are not bound to a key.
	RequireDPoP bool
	// DPoPNonces makes clients put a value of this server into each proof. It is valid for a few
	// minutes, so that proofs cannot be made in advance.
	DPoPNonces bool
	// Check decides about a token after its signature, issuer, audience and time. It may change
	// the token's Scopes, for example by other claims. An error refuses the token; clients do not
	// see its text. The result counts for up to 5 minutes. Check may be called concurrently.
	Check func(ctx context.Context, t *Token) error
	// Keys seal DPoP nonces. Replicas must share them. nil means random keys.
	Keys *mcp.Keys
	// HTTPClient requests metadata, keys and introspection. nil means a client with a limit of
	// 10 s, which does not follow redirects.
	HTTPClient *http.Client
	// Logger receives the reason of each refusal, without the token. nil means slog.Default.
	Logger *slog.Logger
}

// Issuer is an authorization server.
type Issuer struct {
	// URL is the issuer identifier. It must be equal to iss in the tokens, to the letter.
	URL string
	// KeySetURL is the address of the keys that sign the tokens. "" means that the issuer's
	// metadata names it.
	KeySetURL string
	// Algorithms are the signature algorithms that are accepted. nil means RS256, PS256, ES256 and
	// EdDSA, and the longer variants of the first three. Symmetric algorithms are an error.
	Algorithms []string
	// RequireType refuses signed tokens without the type at+jwt (RFC 9068). Without it, the type
	// JWT, which many authorization servers use, is accepted for tokens with scope, scp, or roles
	// of a client, if they do not look like ID tokens.
	RequireType bool
	// Introspection asks the issuer about opaque tokens. nil refuses them. An opaque token does not
	// name its issuer: each issuer with Introspection sees it, in order, until one knows it.
	Introspection *Introspection
}

// Introspection describes how an [Issuer] is asked about a token (RFC 7662).
type Introspection struct {
	// URL is the endpoint. "" means that the issuer's metadata names it.
	URL string
	// ClientID and ClientSecret are the credentials of this server.
	ClientID, ClientSecret string
	// Always asks about signed tokens too, so that a revoked token is refused within a minute.
	Always bool
}

// clockSkew is how far the clocks of issuers may differ from ours.
const clockSkew = time.Minute

// checkOptions returns the URL of the resource, or the first mistake.
func (o *Options) checkOptions() (*url.URL, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("resource: URL: %w", err)
	}
	if len(o.Issuers) == 0 {
		return nil, errors.New("resource: no issuer: name at least one authorization server in Issuers")
	}
	for _, scope := range slices.Concat(o.Scopes, o.ScopesSupported) {
		if !isScope(scope) {
			return nil, fmt.Errorf("resource: %q is not a scope: want printable ASCII without spaces, quotes and backslashes", scope)
		}
	}
	return u, nil
}

// parseURL parses a URL of the configuration: https, or http on a loopback host.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not usable: want https://HOST/PATH without user, query and fragment", raw)
	case u.Scheme == "http" && !httpwire.IsLoopbackHost(u.Hostname()):
		return nil, fmt.Errorf("%q is not encrypted: want https, or a loopback host", raw)
	}
	return u, nil
}

// isScope reports whether s is one scope (RFC 6749, section 3.3).
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}
