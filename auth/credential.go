package auth

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// credential is an access token in use. It does not change.
type credential struct {
	generation uint64 // of the record
	login      string // Record.LoginID
	token      string
	field      []string       // value of the Authorization field, shared by all requests
	dpop       *oauth.DPoPKey // nil for a bearer token
	expires    time.Time      // zero if unknown
	renewAt    time.Time      // zero if the token cannot be renewed ahead of time
	requested  []string
	granted    []string
}

// newCredential returns the credential of a record, or nil if the record lacks a token.
func newCredential(r *Record) (*credential, error) {
	if r == nil || r.AccessToken == "" {
		return nil, nil
	}
	c := &credential{
		generation: r.Generation, login: r.LoginID, token: r.AccessToken, expires: r.ExpiresAt, requested: r.Requested, granted: r.Granted,
	}
	scheme := "Bearer"
	if strings.EqualFold(r.TokenType, oauth.SchemeDPoP) {
		key, err := oauth.ParseDPoPKey(r.DPoPKey)
		if err != nil {
			return nil, fmt.Errorf("the login of %s: %w", r.Server, err)
		}
		scheme, c.dpop = oauth.SchemeDPoP, key
	}
	c.field = []string{scheme + " " + r.AccessToken}
	if r.RefreshToken != "" && !r.ExpiresAt.IsZero() {
		c.renewAt = r.ExpiresAt.Add(-renewalMargin(r.ExpiresAt.Sub(r.ObtainedAt)))
	}
	return c, nil
}

// renewalMargin returns how long before its end a token with a lifetime is renewed: a minute, and
// for short ones a tenth of the lifetime.
func renewalMargin(lifetime time.Duration) time.Duration {
	return max(0, min(time.Minute, lifetime/10))
}

// scheme returns the scheme of the Authorization field, or "" without a credential.
func (c *credential) scheme() string {
	switch {
	case c == nil:
		return ""
	case c.dpop != nil:
		return oauth.SchemeDPoP
	}
	return "Bearer"
}

func (c *credential) canRenew() bool { return !c.renewAt.IsZero() }

// isExpired reports whether the token is known to have expired.
func (c *credential) isExpired() bool { return !c.expires.IsZero() && !time.Now().Before(c.expires) }

// isNewer reports whether c holds another token than the failed credential.
func (c *credential) isNewer(failed *credential) bool {
	return c != nil && (failed == nil || c.token != failed.token)
}

// hasRequested reports whether the token was asked for with all the scopes.
func (c *credential) hasRequested(scopes []string) bool {
	return len(unionScopes(c.requested, scopes)) == len(c.requested)
}

// setTokens stores the answer of a token endpoint in a record.
func (r *Record) setTokens(a *tokenAnswer, requested []string, now time.Time) {
	r.AccessToken, r.TokenType = a.AccessToken, a.tokenType()
	if a.RefreshToken != "" {
		r.RefreshToken = a.RefreshToken // else the old one stays valid
	}
	r.ObtainedAt, r.ExpiresAt = now, time.Time{}
	if a.lifetime > 0 {
		r.ExpiresAt = now.Add(a.lifetime)
	}
	r.Requested, r.Granted = requested, requested // without a scope, the server has granted all
	if a.scopes != nil {
		r.Granted = a.scopes
	}
}

// dropTokens removes the tokens from a record. The registration stays.
func (r *Record) dropTokens() {
	r.AccessToken, r.TokenType, r.RefreshToken, r.LoginID, r.DPoPKey = "", "", "", "", nil
	r.ExpiresAt, r.ObtainedAt = time.Time{}, time.Time{}
}
