package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// Login gets a new token, also if there is one that works. The scopes are asked for in addition.
// The server is asked first, with a request without a token, where its authorization server is.
func (t *Transport) Login(ctx context.Context, scopes ...string) error {
	t.mu.Lock()
	clear(t.stepUps)
	t.failure = loginFailure{}
	t.mu.Unlock()
	_, err := t.acquire(ctx, &need{kind: explicit, challenge: t.askChallenge(ctx), extraScopes: scopes})
	return err
}

// LoginID identifies the current login; it is empty without one. It changes when a user logs in,
// also if that was in another process, and not when a token is refreshed. A client uses it to keep
// the private results of different users apart.
func (t *Transport) LoginID() string {
	if c := t.current.Load(); c != nil {
		return c.login
	}
	return ""
}

// askChallenge returns the challenge that the server answers to a request without a token, or an
// empty one.
func (t *Transport) askChallenge(ctx context.Context) challenge {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.server, nil)
	if err != nil {
		return challenge{}
	}
	r.Header.Set("Accept", "text/event-stream, application/json")
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return challenge{}
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return challenge{}
	}
	return readChallenge(resp.Header, "")
}

// Logout revokes the tokens at the authorization server, if it can, and deletes the record, also if
// it returns an error. Of a client that was registered by hand, the record keeps the authorization
// server: no other one may get the client's secret.
func (t *Transport) Logout(ctx context.Context) error {
	var revoked error
	err := t.opts.Store.Update(ctx, t.key, func(r *Record) (*Record, error) {
		if r == nil {
			return nil, nil
		}
		revoked = errors.Join(t.revoke(ctx, r), t.deleteRegistration(ctx, r))
		return r.binding(), nil
	})
	t.current.Store(nil)
	return errors.Join(err, revoked)
}

// revoke revokes the refresh token, then the access token (RFC 7009).
func (t *Transport) revoke(ctx context.Context, r *Record) error {
	var m oauth.ServerMetadata
	if json.Unmarshal(r.Metadata, &m) != nil || m.RevocationEndpoint == "" {
		return nil
	}
	var failed error
	for _, token := range []struct{ value, hint string }{{r.RefreshToken, "refresh_token"}, {r.AccessToken, "access_token"}} {
		if token.value == "" {
			continue
		}
		form, header := url.Values{"token": {token.value}, "token_type_hint": {token.hint}}, http.Header{}
		request := tokenRequest{endpoint: m.RevocationEndpoint, issuer: r.Issuer, client: r.Registration}
		if err := t.authenticate(request, form, header); err != nil {
			return err
		}
		a, err := t.fetcher.post(ctx, m.RevocationEndpoint, "application/x-www-form-urlencoded", form.Encode(), header)
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("the %s could not be revoked: %w", token.hint, err))
		case a.status != http.StatusOK && !isUnrevocable(a):
			failed = errors.Join(failed, fmt.Errorf("the %s could not be revoked: %s answers with status %d", token.hint, m.RevocationEndpoint, a.status))
		}
	}
	return failed
}

// deleteRegistration deletes the registration of a client that was registered dynamically, if the
// authorization server has said how (RFC 7592, section 2.3). The address must be on the host of the
// issuer or of its registration endpoint, because it gets a secret. Servers may refuse deletions.
func (t *Transport) deleteRegistration(ctx context.Context, r *Record) error {
	reg := r.Registration
	var m oauth.ServerMetadata
	if !reg.Dynamic || reg.ManagementURI == "" || reg.ManagementToken == "" || json.Unmarshal(r.Metadata, &m) != nil {
		return nil
	}
	if !isHostOf(reg.ManagementURI, r.Issuer, m.RegistrationEndpoint) {
		return nil
	}
	header := http.Header{"Authorization": {"Bearer " + reg.ManagementToken}}
	a, err := t.fetcher.request(ctx, http.MethodDelete, reg.ManagementURI, "", header)
	if err != nil {
		return fmt.Errorf("the client's registration could not be deleted: %w", err)
	}
	switch a.status {
	case http.StatusNoContent, http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil
	}
	return fmt.Errorf("the client's registration could not be deleted: %s answers with status %d", shorten(reg.ManagementURI), a.status)
}

// isHostOf reports whether an address is on the host and port of one of the others.
func isHostOf(address string, others ...string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && slices.ContainsFunc(others, func(other string) bool {
		o, err := url.Parse(other)
		return err == nil && strings.EqualFold(o.Host, u.Host) && o.Scheme == u.Scheme
	})
}

// isUnrevocable reports whether a server does not revoke tokens of a kind, such as signed access
// tokens, which end by themselves (RFC 7009, section 2.2.1).
func isUnrevocable(a *answer) bool {
	var refused struct {
		Error string `json:"error"`
	}
	return a.isJSON && json.Unmarshal(a.body, &refused) == nil && refused.Error == "unsupported_token_type"
}

// Discover finds the authorization server without using it, and returns each request that this
// took. An error is a [*DiscoveryError]; with an issuer, it says why a user cannot log in there.
func (t *Transport) Discover(ctx context.Context) (issuer string, tried []Attempt, err error) {
	d, err := t.discover(ctx, &need{challenge: t.askChallenge(ctx)}, nil)
	if failed, ok := errors.AsType[*DiscoveryError](err); ok {
		return "", failed.tried, err
	}
	if o := t.opts; o.Assertion != nil || o.Subject != nil || o.ClientCredentials {
		return d.server.Issuer, d.tried, nil
	}
	if d.server.DeviceAuthorizationEndpoint == "" {
		err = t.checkCodeFlow(d)
	}
	if _, isKnown := t.knownRegistration(d, &Record{}, false); err == nil && !isKnown && d.server.RegistrationEndpoint == "" {
		reason := "the authorization server " + d.server.Issuer + " registers no clients by itself"
		err = &DiscoveryError{Server: t.server, Reason: reason, Setting: "Client", tried: d.tried}
	}
	return d.server.Issuer, d.tried, err
}
