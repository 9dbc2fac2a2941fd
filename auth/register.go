package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// isDocumentURL reports whether a URL may be a client id (client-registration: client ID metadata
// documents).
func isDocumentURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https" && u.Host != "" && len(u.Path) > 1 && u.Fragment == "" && u.User == nil
}

// knownRegistration returns a registration that exists already: by the options, by the metadata
// document, or by an earlier dynamic registration. ok is false if the client must be registered.
func (t *Transport) knownRegistration(d *discovery, r *Record, noDocument bool) (reg Registration, ok bool) {
	c := t.opts.Client
	switch {
	case c.ID != "":
		return Registration{
			ClientID: c.ID, ClientSecret: c.Secret, AuthMethod: chooseMethod(d.server, c.Secret != "", c.Key != nil),
		}, true
	case c.DocumentURL != "" && d.server.ClientIDMetadataDocuments && !noDocument:
		return Registration{
			ClientID: c.DocumentURL, RedirectURIs: documentRedirectURIs(c.RedirectURI), AuthMethod: chooseMethod(d.server, false, c.Key != nil),
		}, true
	}
	reg = r.Registration
	expired := !reg.Expires.IsZero() && !time.Now().Before(reg.Expires)
	return reg, reg.Dynamic && reg.ClientID != "" && !expired
}

// registerFor returns the registration to use with a redirect URI. It registers the client if that
// is needed.
func (t *Transport) registerFor(ctx context.Context, d *discovery, r *Record, redirectURI string, noDocument bool) (Registration, error) {
	reg, ok := t.knownRegistration(d, r, noDocument)
	if ok && (!reg.Dynamic || slices.Contains(reg.RedirectURIs, redirectURI)) {
		return reg, nil
	}
	if d.server.RegistrationEndpoint == "" {
		return reg, &NeedsLogin{Server: t.server, Reason: "the authorization server " + d.server.Issuer +
			" registers no clients by itself: create a client there with the redirect URI " + redirectURI + ", and configure its id"}
	}
	return t.registerDynamically(ctx, d, redirectURI)
}

// registrationAnswer is the answer of a registration endpoint (RFC 7591, section 3.2.1).
type registrationAnswer struct {
	ClientID      string   `json:"client_id"`
	ClientSecret  string   `json:"client_secret"`
	SecretExpires int64    `json:"client_secret_expires_at"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	RedirectURIs  []string `json:"redirect_uris"`
	// RFC 7592, section 3
	ManagementURI   string `json:"registration_client_uri"`
	ManagementToken string `json:"registration_access_token"`

	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// registerDynamically registers the client (RFC 7591). Clients on loopback addresses are native
// (client-registration: application type); a server that refuses that is asked once for a web
// client.
func (t *Transport) registerDynamically(ctx context.Context, d *discovery, redirectURI string) (reg Registration, err error) {
	kind := "web"
	if u, err := url.Parse(redirectURI); err == nil && (isLoopbackHost(u.Hostname()) || u.Scheme != "https") {
		kind = "native"
	}
	wanted, grants := registrationMethod(d.server), []string{grantCode, grantRefresh}
	if d.server.DeviceAuthorizationEndpoint != "" {
		grants = append(grants, grantDevice)
	}
	document := map[string]any{
		"client_name": t.opts.Client.name(), "redirect_uris": []string{redirectURI}, "application_type": kind,
		"grant_types": grants, "response_types": []string{"code"},
		"token_endpoint_auth_method": wanted, "software_id": "dowel",
	}
	a, err := t.postRegistration(ctx, d.server.RegistrationEndpoint, document)
	if refusedAs(err, "invalid_client_metadata") && kind == "native" {
		document["application_type"] = "web"
		if second, again := t.postRegistration(ctx, d.server.RegistrationEndpoint, document); again == nil {
			a, err = second, nil
		}
	}
	if err != nil {
		return reg, fmt.Errorf("the client cannot be registered: %w", err)
	}
	reg = Registration{
		ClientID: a.ClientID, ClientSecret: a.ClientSecret, AuthMethod: a.AuthMethod, RedirectURIs: a.RedirectURIs, Dynamic: true,
		ManagementURI: a.ManagementURI, ManagementToken: a.ManagementToken,
	}
	if a.SecretExpires > 0 {
		reg.Expires = time.Unix(a.SecretExpires, 0)
	}
	if !slices.Contains(reg.RedirectURIs, redirectURI) {
		reg.RedirectURIs = append(reg.RedirectURIs, redirectURI)
	}
	if reg.AuthMethod == "" {
		reg.AuthMethod = wanted
	}
	if reg.ClientSecret == "" && reg.AuthMethod != methodKey {
		reg.AuthMethod = methodNone
	}
	return reg, nil
}

// saveRegistration stores the registration of a record before the login that it was made for, so
// that a login which is given up does not lead to another registration. Tokens keep the
// registration with which they were issued: a refresh token belongs to one client (RFC 6749,
// section 6).
func (t *Transport) saveRegistration(ctx context.Context, r *Record) error {
	return t.opts.Store.Update(context.WithoutCancel(ctx), t.key, func(before *Record) (*Record, error) {
		isChanged := before != nil && before.Generation != r.Generation // by another process, which adoptOther must see
		if !isChanged {
			r.Generation++
		}
		if before != nil && (before.AccessToken != "" || before.RefreshToken != "") {
			before.Pending = &Record{Issuer: r.Issuer, Registration: r.Registration}
			return before, nil
		}
		return &Record{Server: t.server, Account: t.opts.Account, Issuer: r.Issuer, Registration: r.Registration}, nil
	})
}

// usePending takes over the registration of an earlier login that did not succeed.
func (r *Record) usePending() {
	if p := r.Pending; p != nil && p.Issuer == r.Issuer {
		r.Registration = p.Registration
	}
}

// registrationMethod returns the method to register with: no secret if the server allows that,
// because a program on a user's machine cannot keep one.
func registrationMethod(m *oauth.ServerMetadata) string {
	methods := m.TokenEndpointAuthMethods
	if len(methods) == 0 || slices.Contains(methods, methodNone) {
		return methodNone
	}
	return chooseMethod(m, true, false)
}

func (c *Client) name() string {
	if c.Name == "" {
		return "dowel"
	}
	return c.Name
}

func (t *Transport) postRegistration(ctx context.Context, endpoint string, document map[string]any) (*registrationAnswer, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	a, err := t.fetcher.post(ctx, endpoint, "application/json", string(body), http.Header{})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", endpoint, err)
	}
	var r registrationAnswer
	isOK := a.status == http.StatusCreated || a.status == http.StatusOK
	if !a.isJSON || json.Unmarshal(a.body, &r) != nil || !isOK || r.ClientID == "" {
		return nil, a.refusal(endpoint, r.Error, r.Description)
	}
	return &r, nil
}
