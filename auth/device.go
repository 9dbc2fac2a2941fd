package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// DeviceCode tells a user how to log in with a browser on another device (RFC 8628).
type DeviceCode struct {
	Code    string // which the user enters at URL
	URL     string
	FullURL string // URL with the code; empty if the server gave none
	Expires time.Time
}

// Waits between two polls of the device flow (RFC 8628, section 3.5).
const (
	pollInterval    = 5 * time.Second
	minPollInterval = time.Second
	slowDown        = 5 * time.Second
)

// deviceAnswer is the answer of a device authorization endpoint.
type deviceAnswer struct {
	DeviceCode  string          `json:"device_code"`
	UserCode    string          `json:"user_code"`
	URL         string          `json:"verification_uri"`
	FullURL     string          `json:"verification_uri_complete"`
	ExpiresIn   json.RawMessage `json:"expires_in"`
	Interval    json.RawMessage `json:"interval"`
	Error       string          `json:"error"`
	Description string          `json:"error_description"`
}

// deviceRedirect is registered for clients that only use the device flow: a registration needs one.
const deviceRedirect = "http://127.0.0.1:13316/callback"

// byDevice implements LoginRequest.Device. It keeps the token in f until Login has returned.
func (f *codeFlow) byDevice(ctx context.Context, show func(DeviceCode)) error {
	reg, err := f.useRegistration(ctx, deviceRedirect)
	if err != nil {
		return err
	}
	endpoint := f.d.server.DeviceAuthorizationEndpoint
	form := f.t.newForm(f.d, "", f.scopes)
	form.Del("grant_type")
	begun, err := f.t.postDevice(ctx, tokenRequest{endpoint: endpoint, issuer: f.d.server.Issuer, form: form, client: reg})
	if err != nil {
		return err
	}
	lifetime := readLifetime(begun.ExpiresIn)
	if lifetime == 0 {
		lifetime = loginTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lifetime, errors.New("the code has expired"))
	defer cancel()
	f.t.reportLogin(ctx, begun.URL)
	show(DeviceCode{Code: begun.UserCode, URL: begun.URL, FullURL: begun.FullURL, Expires: time.Now().Add(lifetime)})
	f.device, err = f.pollDevice(ctx, reg, begun)
	return err
}

// postDevice starts a device flow.
func (t *Transport) postDevice(ctx context.Context, r tokenRequest) (*deviceAnswer, error) {
	form, header := cloneForm(r.form), http.Header{}
	if err := t.authenticate(r, form, header); err != nil {
		return nil, err
	}
	a, err := t.fetcher.post(ctx, r.endpoint, "application/x-www-form-urlencoded", form.Encode(), header)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", r.endpoint, err)
	}
	var d deviceAnswer
	if !a.isJSON || json.Unmarshal(a.body, &d) != nil || a.status != http.StatusOK || d.DeviceCode == "" || d.UserCode == "" {
		return nil, a.refusal(r.endpoint, d.Error, d.Description)
	}
	for _, page := range []string{d.URL, d.FullURL} {
		if _, err := checkSecure(page); err != nil && page != "" {
			return nil, fmt.Errorf("the page of the device flow: %w", err)
		}
	}
	return &d, nil
}

// pollDevice asks for the token until the user has decided.
func (f *codeFlow) pollDevice(ctx context.Context, reg Registration, begun *deviceAnswer) (*tokenAnswer, error) {
	interval := pollInterval
	if given := readLifetime(begun.Interval); given > 0 {
		interval = max(given, minPollInterval)
	}
	form := f.t.newForm(f.d, grantDevice, nil)
	form.Set("device_code", begun.DeviceCode)
	for {
		if err := f.t.wait(ctx, interval); err != nil {
			return nil, err
		}
		a, err := f.t.requestToken(ctx, tokenRequest{
			endpoint: f.d.server.TokenEndpoint, issuer: f.d.server.Issuer, form: form, client: reg, dpop: f.key,
		})
		var refused *TokenError
		switch {
		case refusedAs(err, "slow_down"):
			interval += slowDown
		case refusedAs(err, "authorization_pending"):
		case err != nil && !errors.As(err, &refused) && ctx.Err() == nil:
			interval *= 2 // the server cannot be reached for now (RFC 8628, section 3.5)
		default:
			return a, err
		}
	}
}

// loginParams returns the parameters of a redirect. They are nil after a device flow, which has no
// redirect.
func (f *codeFlow) loginParams(ctx context.Context) (url.Values, error) {
	request := LoginRequest{Server: f.t.server, Account: f.t.opts.Account, Start: f.startLogin}
	if f.d.server.DeviceAuthorizationEndpoint != "" {
		request.Device = f.byDevice
	}
	if configured := f.t.opts.Client.RedirectURI; configured != "" {
		request.RedirectURIs, request.Exact = []string{configured}, true
	} else if reg, ok := f.t.knownRegistration(f.d, f.record, f.noDocument); ok {
		request.RedirectURIs = append([]string(nil), reg.RedirectURIs...)
	}
	defer f.t.reportLogin(ctx, "")
	return f.t.opts.Login.Login(ctx, request)
}
