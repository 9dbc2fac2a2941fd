package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Enterprise gets assertions from the identity provider of an organization, which decides the
// servers that its users may reach (extension enterprise-managed-authorization). Use its Assert as
// [Options.Assertion]. Options.Client is the client's registration at the authorization server of
// the MCP server.
type Enterprise struct {
	// TokenURL is the token endpoint of the identity provider.
	TokenURL string
	// ClientID and ClientSecret are the registration of the client there. A client without a secret
	// only sends its id.
	ClientID, ClientSecret string
	// IDToken returns the token of the user's single sign-on: an OpenID Connect ID token.
	IDToken func(ctx context.Context) (string, error)
	// AccessToken returns an access token of the user that the identity provider has issued. A
	// gateway uses it, because it has no ID token of its users. Set it in place of IDToken.
	AccessToken func(ctx context.Context) (string, error)
	// Base sends the requests. nil means a transport that is shared by all.
	Base http.RoundTripper
}

const (
	tokenTypeID    = "urn:ietf:params:oauth:token-type:id_token"
	tokenTypeIDJAG = "urn:ietf:params:oauth:token-type:id-jag"
)

// Assert exchanges the user's ID token for an assertion that the authorization server of an MCP
// server accepts, an ID-JAG.
func (e *Enterprise) Assert(ctx context.Context, r AssertionRequest) (string, error) {
	read, kind := e.IDToken, tokenTypeID
	if read == nil {
		read, kind = e.AccessToken, tokenTypeAccess
	}
	if read == nil {
		return "", errors.New("neither Enterprise.IDToken nor AccessToken is set")
	}
	token, err := read(ctx)
	if err != nil {
		return "", fmt.Errorf("no token of the user: %w", err)
	}
	form := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {tokenTypeIDJAG}, "audience": {r.Issuer},
		"subject_token": {token}, "subject_token_type": {kind}, "client_id": {e.ClientID},
	}
	if r.Resource != "" {
		form.Set("resource", r.Resource)
	}
	if len(r.Scopes) > 0 {
		form.Set("scope", joinScopes(r.Scopes))
	}
	if e.ClientSecret != "" {
		form.Set("client_secret", e.ClientSecret)
	}
	idp, err := url.Parse(e.TokenURL)
	if err != nil {
		return "", errors.New("Enterprise.TokenURL is not a URL")
	}
	base := e.Base
	if base == nil {
		base = sharedBase()
	}
	a, err := newFetcher(idp, base, true).post(ctx, e.TokenURL, "application/x-www-form-urlencoded", form.Encode(), http.Header{})
	if err != nil {
		return "", fmt.Errorf("the identity provider %s cannot be reached: %w", e.TokenURL, err)
	}
	answered, err := readTokenAnswer(e.TokenURL, a)
	if err != nil {
		return "", err
	}
	if !strings.EqualFold(answered.IssuedTokenType, tokenTypeIDJAG) {
		return "", fmt.Errorf("the identity provider %s issued a token of type %q, want %s", e.TokenURL, shorten(answered.IssuedTokenType), tokenTypeIDJAG)
	}
	return answered.AccessToken, nil
}
