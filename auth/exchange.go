package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

const (
	tokenTypeAccess = "urn:ietf:params:oauth:token-type:access_token"
	tokenTypeJWT    = "urn:ietf:params:oauth:token-type:jwt"
)

// obtainByExchange exchanges the token of the user for one of the MCP server: by token exchange
// (RFC 8693), or in the form of Entra.
func (t *Transport) obtainByExchange(ctx context.Context, d *discovery, r *Record, key *oauth.DPoPKey, scopes []string) (*credential, error) {
	subject, err := t.opts.Subject(ctx)
	if err != nil {
		return nil, &NeedsLogin{Server: t.server, Reason: "there is no token of the user to exchange", Err: err}
	}
	form := t.newForm(d, grantExchange, scopes)
	if t.opts.OnBehalfOf {
		form.Set("grant_type", grantAssertion)
		form.Set("requested_token_use", "on_behalf_of")
		form.Set("assertion", subject)
		form.Del("resource") // AADSTS9010010
	} else {
		form.Set("subject_token", subject)
		form.Set("subject_token_type", tokenTypeAccess)
		form.Set("requested_token_type", tokenTypeAccess)
	}
	next := *r
	next.Registration, _ = t.knownRegistration(d, r, false) // the options have a client
	a, err := t.requestToken(ctx, tokenRequest{
		endpoint: d.server.TokenEndpoint, issuer: d.server.Issuer, form: form, client: next.Registration, dpop: key,
	})
	if err != nil {
		return nil, fmt.Errorf("the token of the user cannot be exchanged: %w", err)
	}
	if a.AccessToken == subject { // it would pass the token of another server on
		return nil, errors.New("the authorization server " + d.server.Issuer + " has not exchanged the token of the user, but returned it")
	}
	if a.IssuedTokenType != "" && a.IssuedTokenType != tokenTypeAccess && a.IssuedTokenType != tokenTypeJWT {
		return nil, fmt.Errorf("the authorization server %s issued a token of type %q, want %s", d.server.Issuer, shorten(a.IssuedTokenType), tokenTypeAccess)
	}
	return t.finish(ctx, d, &next, a, key, scopes)
}
