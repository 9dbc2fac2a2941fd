package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

const (
	tokenLife         = 5 * time.Minute // a verified token counts without another verification
	introspectionLife = time.Minute     // the same for an answer of an issuer
	inactiveLife      = 5 * time.Second // a refused token is refused without another question
	verifyTimeout     = 20 * time.Second
)

// findToken returns the authorization of a token, from the cache if possible. Concurrent requests
// with one unknown token cause one verification. remote is the address of the sender.
func (s *Server) findToken(ctx context.Context, remote, raw string) (*httpwire.Authorization, error) {
	key := newTokenKey(raw)
	now := s.now()
	if v, ok := s.cache.findVerdict(key, now); ok {
		if v.err == nil && v.expires.Add(clockSkew).Before(now) {
			return nil, refuse(codeInvalidToken, errors.New("the token has expired"))
		}
		return v.auth, v.err
	}
	i, err := s.issuerOf(raw)
	if err != nil {
		return nil, refuse(codeInvalidToken, err)
	}
	pool := &s.cache.local
	if mustAsk(i) {
		pool = &s.cache.asking
	}
	return s.cache.verifyOnce(ctx, key, pool, senderOf(remote), func() verdict {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
		defer cancel()
		return s.verify(detached, i, raw)
	})
}

// mustAsk reports whether a token is verified by introspection, not by the keys of its issuer. i is
// the issuer that the token names, or nil.
func mustAsk(i *issuer) bool {
	return i == nil || i.Introspection != nil && i.Introspection.Always
}

// verify verifies a token that is not in the cache. i is the issuer that the token names, or nil.
func (s *Server) verify(ctx context.Context, i *issuer, raw string) verdict {
	introspected := mustAsk(i)
	t, err := s.readToken(ctx, i, raw)
	if err == nil {
		err = s.acceptToken(ctx, t)
	}
	now := s.now()
	switch why := (*unavailableError)(nil); {
	case errors.As(err, &why):
		return verdict{err: err} // the next request tries again
	case err != nil:
		var until time.Time
		if introspected { // the signature of a token is verified as fast as the cache is read
			until = now.Add(inactiveLife)
		}
		return verdict{err: refuse(codeInvalidToken, err), until: until}
	}
	life := tokenLife
	if introspected {
		life = introspectionLife
	}
	auth := &httpwire.Authorization{Principal: t.principal(), Challenge: s.challengeScopes, Token: t, Raw: strings.Clone(raw)}
	return verdict{auth: auth, expires: t.Expires, until: now.Add(life)}
}

// readToken returns the verified contents of a token. A token that names no issuer is shown to each
// issuer that is asked about opaque tokens.
func (s *Server) readToken(ctx context.Context, i *issuer, raw string) (*Token, error) {
	switch {
	case i == nil:
		return s.introspect(ctx, raw)
	case mustAsk(i):
		return i.introspect(ctx, raw, s.now())
	}
	return i.verifyJWT(ctx, raw, s.now())
}

// acceptToken decides about a token that its issuer has vouched for: by its audience, its key and
// [Options.Check].
func (s *Server) acceptToken(ctx context.Context, t *Token) error {
	ok, forAll := s.isForUs(t.Audience)
	if !ok {
		return fmt.Errorf("the token of %s has the audience %q, want one of %q", t.Issuer, t.Audience, s.audiences)
	}
	t.forAllPaths = forAll
	if t.Subject == "" && t.ClientID == "" {
		return fmt.Errorf("the token of %s has neither sub nor client_id", t.Issuer)
	}
	t.Scopes = addImplied(t.Scopes, s.opts.ImpliedScopes)
	if s.opts.Check == nil {
		return nil
	}
	if err := s.opts.Check(ctx, t); err != nil {
		return fmt.Errorf("Options.Check: %w", err)
	}
	return nil
}

// newToken returns the token with claims that were verified, or the first rule that they break.
// fields is the object that c was read from.
func (i *issuer) newToken(c *claims, fields []byte, now time.Time) (*Token, error) {
	if c.Expires == nil {
		return nil, errors.New("the token has no exp")
	}
	expires := unixTime(*c.Expires)
	switch {
	case c.Issuer != i.URL:
		return nil, fmt.Errorf("the token has the issuer %q, want %q", c.Issuer, i.URL)
	case now.After(expires.Add(clockSkew)):
		return nil, fmt.Errorf("the token has expired at %v", expires)
	case c.NotBefore != nil && now.Before(unixTime(*c.NotBefore).Add(-clockSkew)):
		return nil, fmt.Errorf("the token is valid from %v only", unixTime(*c.NotBefore))
	case c.IssuedAt != nil && now.Before(unixTime(*c.IssuedAt).Add(-clockSkew)):
		return nil, fmt.Errorf("the token was issued in the future, at %v", unixTime(*c.IssuedAt))
	}
	t := &Token{
		Issuer: c.Issuer, Subject: c.Subject, ClientID: c.client(), Scopes: c.scopes(),
		Audience: c.Audience, Expires: expires, Claims: fields,
	}
	for name, value := range c.Confirm {
		thumbprint, ok := value.(string)
		if name != "jkt" || !ok || thumbprint == "" {
			return nil, fmt.Errorf("the token is bound to a key by cnf.%s, and this server knows cnf.jkt only", name)
		}
		t.keyThumbprint = thumbprint
	}
	return t, nil
}

// unixTime returns the time of a claim. Times beyond the year 9999 become that year.
func unixTime(seconds float64) time.Time {
	const latest = 253402300799
	return time.Unix(int64(max(0, min(seconds, latest))), 0)
}

func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }
