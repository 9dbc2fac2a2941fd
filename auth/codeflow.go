package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// codeFlow is one login with an authorization code (authorization: authorization flow).
type codeFlow struct {
	t          *Transport
	d          *discovery
	record     *Record // start replaces its registration
	key        *oauth.DPoPKey
	scopes     []string
	noDocument bool // do not use the metadata document, which was refused

	verifier, state, redirectURI string
	isStarted                    bool
	isReused                     bool         // the registration was made for an earlier login
	device                       *tokenAnswer // of a device flow
}

// obtainByLogin lets the user log in. It begins again once if the authorization server has
// forgotten the client, refuses the metadata document, or refuses scopes beyond the base.
func (t *Transport) obtainByLogin(ctx context.Context, n *need, d *discovery, r *Record, key *oauth.DPoPKey, base, scopes []string) (*credential, error) {
	if err := t.checkCodeFlow(d); err != nil && d.server.DeviceAuthorizationEndpoint == "" {
		return nil, err
	}
	if err := t.recentFailure(n, r.Generation); err != nil {
		return nil, err
	}
	record := *r
	record.usePending()
	f := &codeFlow{t: t, d: d, record: &record, key: key, scopes: withOffline(scopes, d)}
	for try := 0; ; try++ {
		a, err := f.run(ctx)
		if err == nil {
			return t.finish(ctx, d, f.record, a, key, f.scopes)
		}
		if c := t.adoptOther(ctx, f.record, n); c != nil {
			return c, nil
		}
		if try == 0 && f.canRepeat(err, base) {
			continue
		}
		if f.isReused && f.mayBeForgotten(ctx, err) {
			f.record.Registration = Registration{}
			err = errors.Join(err, t.saveRegistration(ctx, f.record))
		}
		err = t.loginFailed(err)
		t.noteFailure(ctx, n, f.record.Generation, err)
		return nil, err
	}
}

// mayBeForgotten reports whether a login may have failed because the authorization server has
// forgotten the client: its page says so, and does not redirect. It is false if the callers have
// gone.
func (f *codeFlow) mayBeForgotten(ctx context.Context, err error) bool {
	var refused *TokenError
	return !errors.As(err, &refused) && (ctx.Err() == nil || errors.Is(context.Cause(ctx), errLoginTimeout))
}

// checkCodeFlow returns an error unless the server can be used for a login with a code. A server
// without S256 among its methods must be refused (security-considerations: authorization code
// protection).
func (t *Transport) checkCodeFlow(d *discovery) error {
	reason, setting := "the authorization server "+d.server.Issuer+" has no authorization_endpoint", "AuthorizationURL"
	if d.server.AuthorizationEndpoint != "" {
		if d.legacy && len(d.server.CodeChallengeMethods) == 0 || slices.Contains(d.server.CodeChallengeMethods, "S256") ||
			t.opts.Server.AssumePKCE || d.quirks.assumePKCE {
			return nil
		}
		reason = "the authorization server " + d.server.Issuer + " does not say that it supports PKCE with S256 (code_challenge_methods_supported); " +
			"if you know that it does, set assumePKCE"
		setting = "AssumePKCE"
	}
	return &DiscoveryError{Server: t.server, Reason: reason, Setting: setting, tried: d.tried}
}

// canRepeat changes the flow if another try may succeed.
func (f *codeFlow) canRepeat(err error, scopes []string) bool {
	switch {
	case refusedAs(err, "invalid_client", "unauthorized_client") && f.t.opts.Client.ID == "":
		f.record.Registration, f.noDocument = Registration{}, true
		return f.d.server.RegistrationEndpoint != ""
	case refusedAs(err, "invalid_scope") && len(f.scopes) > len(scopes):
		f.scopes = scopes
		return true
	}
	return false
}

// adoptOther returns the token of a login that another process has made meanwhile, or nil. In place
// of a token that has ended, a refreshed one will do.
func (t *Transport) adoptOther(ctx context.Context, before *Record, n *need) *credential {
	r, err := t.opts.Store.Load(context.WithoutCancel(ctx), t.key)
	if err != nil || r == nil || r.Generation == before.Generation || n.kind > renewal && r.LoginID == before.LoginID {
		return nil
	}
	if c, err := newCredential(r); err != nil || !c.isNewer(n.failed) || c.isExpired() {
		return nil
	}
	c, _ := t.adoptRecord(r)
	return c
}

// loginFailed returns the error of a login that failed.
func (t *Transport) loginFailed(err error) error {
	var needs *NeedsLogin
	var undiscovered *DiscoveryError
	switch {
	case errors.As(err, &needs), errors.As(err, &undiscovered):
		return err
	case refusedAs(err, "access_denied"):
		return &NeedsLogin{Server: t.server, Reason: "the login was refused", Err: err}
	}
	return &NeedsLogin{Server: t.server, Reason: "the login failed", Err: err}
}

// run makes one login and returns the answer of the token endpoint.
func (f *codeFlow) run(ctx context.Context) (*tokenAnswer, error) {
	f.verifier, f.state, f.isStarted, f.device = oauth.NewVerifier(), oauth.NewState(), false, nil
	params, err := f.loginParams(ctx)
	if err != nil {
		return nil, err
	}
	if f.device != nil {
		return f.device, nil
	}
	code, err := f.checkRedirect(params)
	if err != nil {
		return nil, err
	}
	return f.redeem(context.WithoutCancel(ctx), code) // the user has approved: do not ask again
}

// startLogin registers the client if that is needed, and returns the authorization URL.
func (f *codeFlow) startLogin(ctx context.Context, redirectURI string) (string, error) {
	if f.isStarted {
		return "", errors.New("Start was called twice")
	}
	f.isStarted, f.redirectURI = true, redirectURI
	if err := f.t.checkCodeFlow(f.d); err != nil {
		return "", err
	}
	if err := checkRedirectURI(redirectURI); err != nil {
		return "", err
	}
	if _, err := f.useRegistration(ctx, redirectURI); err != nil {
		return "", err
	}
	authorizationURL, err := f.authorizationURL(ctx)
	if err == nil {
		f.t.reportLogin(ctx, authorizationURL)
	}
	return authorizationURL, err
}

// useRegistration registers the client if that is needed.
func (f *codeFlow) useRegistration(ctx context.Context, redirectURI string) (Registration, error) {
	reg, err := f.t.registerFor(ctx, f.d, f.record, redirectURI, f.noDocument)
	if err != nil {
		return reg, err
	}
	f.isReused = reg.Dynamic && reg.ClientID == f.record.Registration.ClientID
	f.record.Registration = reg
	if reg.Dynamic && !f.isReused {
		err = f.t.saveRegistration(ctx, f.record)
	}
	return reg, err
}

// checkRedirectURI returns an error unless a redirect URI is a loopback address or https
// (security-considerations: communication security).
func checkRedirectURI(redirectURI string) error {
	u, err := url.Parse(redirectURI)
	if err == nil && u.Host != "" && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopbackHost(u.Hostname())) {
		return nil
	}
	return fmt.Errorf("%q cannot be a redirect URI: want https, or http on a loopback address", shorten(redirectURI))
}

// authorizationURL returns the URL that the user opens. A query of the endpoint is kept.
func (f *codeFlow) authorizationURL(ctx context.Context) (string, error) {
	u, err := checkSecure(f.d.server.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	params := f.authorizationParams(u.Query())
	if f.d.server.RequirePushedAuthorization && f.d.server.PushedAuthorizationEndpoint != "" {
		if params, err = f.pushParams(ctx, params); err != nil {
			return "", err
		}
	}
	q := u.Query()
	maps.Copy(q, params)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String(), nil
}

// authorizationParams returns the parameters of the authorization request. fixed is the query of
// the endpoint.
func (f *codeFlow) authorizationParams(fixed url.Values) url.Values {
	q := f.t.newForm(f.d, "", f.scopes)
	q.Del("grant_type")
	q.Set("response_type", "code")
	q.Set("client_id", f.record.Registration.ClientID)
	q.Set("redirect_uri", f.redirectURI)
	q.Set("state", f.state)
	q.Set("code_challenge", oauth.CodeChallenge(f.verifier))
	q.Set("code_challenge_method", "S256")
	_, isGiven := f.t.opts.Server.Params["prompt"]
	if slices.Contains(f.scopes, scopeOffline) && !f.d.quirks.noConsent && !isGiven && !fixed.Has("prompt") {
		q.Set("prompt", "consent") // OpenID Connect Core, section 11
	}
	if f.key != nil {
		q.Set("dpop_jkt", f.key.Thumbprint())
	}
	return q
}

// pushParams sends the parameters to the authorization server, which returns a reference to them
// (RFC 9126).
func (f *codeFlow) pushParams(ctx context.Context, params url.Values) (url.Values, error) {
	endpoint, client := f.d.server.PushedAuthorizationEndpoint, f.record.Registration
	form, header := cloneForm(params), http.Header{}
	request := tokenRequest{endpoint: endpoint, issuer: f.d.server.Issuer, client: client}
	if err := f.t.authenticate(request, form, header); err != nil {
		return nil, err
	}
	a, err := f.t.fetcher.post(ctx, endpoint, "application/x-www-form-urlencoded", form.Encode(), header)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", endpoint, err)
	}
	var pushed struct {
		RequestURI  string `json:"request_uri"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if !a.isJSON || json.Unmarshal(a.body, &pushed) != nil || pushed.RequestURI == "" {
		return nil, a.refusal(endpoint, pushed.Error, pushed.Description)
	}
	return url.Values{"client_id": {client.ClientID}, "request_uri": {pushed.RequestURI}}, nil
}

// checkRedirect validates the parameters of the redirect and returns the code. The issuer comes
// first: an error of another server must not even be shown (authorization: authorization response
// validation).
func (f *codeFlow) checkRedirect(params url.Values) (code string, err error) {
	if params.Get("state") != f.state {
		return "", errors.New("the redirect does not belong to this login: its state is another one")
	}
	issuer, has := "", params.Has("iss")
	if has {
		issuer = params.Get("iss")
	}
	switch {
	case has && issuer != f.d.server.Issuer:
		return "", errors.New("the redirect comes from another authorization server than " + f.d.server.Issuer + " (parameter iss)")
	case !has && f.d.server.SendsIssuer:
		return "", errors.New("the redirect does not say that it comes from " + f.d.server.Issuer + ", although that server always does (parameter iss)")
	}
	if code := params.Get("error"); code != "" {
		return "", &TokenError{Endpoint: f.d.server.AuthorizationEndpoint, Code: code, Description: shorten(params.Get("error_description"))}
	}
	if code = params.Get("code"); code == "" {
		return "", errors.New("the redirect has no code")
	}
	return code, nil
}

// redeem exchanges the code for a token.
func (f *codeFlow) redeem(ctx context.Context, code string) (*tokenAnswer, error) {
	form := f.t.newForm(f.d, grantCode, nil)
	form.Set("code", code)
	form.Set("redirect_uri", f.redirectURI)
	form.Set("code_verifier", f.verifier)
	return f.t.requestToken(ctx, tokenRequest{
		endpoint: f.d.server.TokenEndpoint, issuer: f.d.server.Issuer, form: form, client: f.record.Registration, dpop: f.key,
	})
}
