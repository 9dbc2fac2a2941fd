package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// Grant types.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantCredentials = "client_credentials"
	grantAssertion   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantDevice      = "urn:ietf:params:oauth:grant-type:device_code"
)

// obtain gets a token in the way that the options name, and saves it.
func (t *Transport) obtain(ctx context.Context, n *need, d *discovery, r *Record) (*credential, error) {
	if err := t.bindClient(ctx, d, r); err != nil {
		return nil, err
	}
	base, scopes := t.chooseScopes(n, d, r)
	key, err := t.proofKey(d, r)
	if err != nil {
		return nil, err
	}
	switch {
	case t.opts.Assertion != nil:
		return t.obtainByAssertion(ctx, d, r, key, base)
	case t.opts.Subject != nil:
		return t.obtainByExchange(ctx, d, r, key, base)
	case t.opts.ClientCredentials:
		return t.obtainByCredentials(ctx, d, r, key, base)
	case t.opts.Login != nil:
		return t.obtainByLogin(ctx, n, d, r, key, base, scopes)
	}
	if n.kind == renewal && n.failed == nil && d.isGuess {
		return nil, errUndescribed
	}
	return nil, &NeedsLogin{Server: t.server, Reason: loginReason(n, r), Err: n.notFresh}
}

// errUndescribed says that a server asks for credentials and that no document describes a login.
// The caller gets the server's refusal, which may say which credentials it wants.
var errUndescribed = errors.New("the server describes no login")

// loginReason says why the stored login is not enough.
func loginReason(n *need, r *Record) string {
	switch {
	case n.notFresh != nil:
		return "the login cannot be renewed"
	case n.failed == nil && r.AccessToken == "" && r.RefreshToken == "":
		return ""
	case n.failed != nil && n.failed.isExpired():
		return "the login has expired"
	}
	return "the server refuses the login (" + n.challenge.reason() + ")"
}

// proofKey returns the key to which tokens are bound, or nil for bearer tokens. The resource
// decides, because the authorization server may serve other resources that know no DPoP.
func (t *Transport) proofKey(d *discovery, r *Record) (*oauth.DPoPKey, error) {
	if !d.dpop {
		return nil, nil
	}
	if len(r.DPoPKey) > 0 {
		return oauth.ParseDPoPKey(r.DPoPKey)
	}
	return oauth.NewDPoPKey()
}

// finish saves the answer of a token endpoint as the login.
func (t *Transport) finish(ctx context.Context, d *discovery, r *Record, a *tokenAnswer, key *oauth.DPoPKey, requested []string) (*credential, error) {
	next := *r
	next.dropTokens()
	next.LoginID, next.Pending = oauth.NewLoginID(), nil
	next.Server, next.Account, next.Issuer, next.Resource = t.server, t.opts.Account, d.server.Issuer, d.resource
	next.Metadata, next.MetadataTime = d.raw, time.Now()
	next.setTokens(a, requested, time.Now())
	if next.TokenType == oauth.SchemeDPoP {
		if key == nil {
			return nil, errors.New("the authorization server issued a DPoP token, but none was asked for")
		}
		raw, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		next.DPoPKey = raw
	}
	return t.save(ctx, &next)
}

// newForm returns the parameters of a token request.
func (t *Transport) newForm(d *discovery, grant string, scopes []string) url.Values {
	form := url.Values{}
	for name, value := range t.opts.Server.Params {
		if value != "" {
			form.Set(name, value)
		}
	}
	form.Set("grant_type", grant)
	if d.resource != "" {
		form.Set("resource", d.resource)
	}
	if len(scopes) > 0 {
		form.Set("scope", joinScopes(scopes))
	}
	return form
}

// obtainByCredentials uses the client credentials grant (extension oauth-client-credentials).
func (t *Transport) obtainByCredentials(ctx context.Context, d *discovery, r *Record, key *oauth.DPoPKey, scopes []string) (*credential, error) {
	reg, ok := t.knownRegistration(d, r, false)
	if !ok {
		return nil, fmt.Errorf("the authorization server %s knows no metadata documents, so client credentials need a client id", d.server.Issuer)
	}
	next := *r
	next.Registration = reg
	a, err := t.requestToken(ctx, tokenRequest{
		endpoint: d.server.TokenEndpoint, issuer: d.server.Issuer, form: t.newForm(d, grantCredentials, scopes), client: reg, dpop: key,
	})
	if err != nil {
		return nil, err
	}
	return t.finish(ctx, d, &next, a, key, scopes)
}

// obtainByAssertion uses the JWT bearer grant (RFC 7523, section 2.1). It tries once: an assertion
// that was refused must not be sent again.
func (t *Transport) obtainByAssertion(ctx context.Context, d *discovery, r *Record, key *oauth.DPoPKey, scopes []string) (*credential, error) {
	assertion, err := t.opts.Assertion(ctx, AssertionRequest{Issuer: d.server.Issuer, Resource: d.resource, Scopes: slices.Clone(scopes)})
	if err != nil {
		return nil, fmt.Errorf("no assertion for %s: %w", d.server.Issuer, err)
	}
	form := t.newForm(d, grantAssertion, scopes)
	form.Set("assertion", assertion)
	next := *r
	next.Registration = Registration{AuthMethod: methodNone}
	if t.opts.Client.ID != "" {
		next.Registration, _ = t.knownRegistration(d, r, false)
	}
	a, err := t.requestToken(ctx, tokenRequest{
		endpoint: d.server.TokenEndpoint, issuer: d.server.Issuer, form: form, client: next.Registration, dpop: key,
	})
	if err != nil {
		return nil, err
	}
	return t.finish(ctx, d, &next, a, key, scopes)
}
