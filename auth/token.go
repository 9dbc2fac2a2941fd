package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// Methods of a client to authenticate at the token endpoint.
const (
	methodNone    = "none"
	methodBasic   = "client_secret_basic"
	methodPost    = "client_secret_post"
	methodKey     = "private_key_jwt"
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// tokenAnswer is an answer of a token endpoint, or of an identity provider.
type tokenAnswer struct {
	AccessToken     string          `json:"access_token"`
	TokenType       string          `json:"token_type"`
	RefreshToken    string          `json:"refresh_token"`
	Scope           json.RawMessage `json:"scope"`      // a string, or a list of them
	ExpiresIn       json.RawMessage `json:"expires_in"` // a number, or a string with one
	IssuedTokenType string          `json:"issued_token_type"`

	Error            string          `json:"error"`
	ErrorDescription string          `json:"error_description"`
	OK               json.RawMessage `json:"ok"` // Slack answers errors with status 200

	lifetime time.Duration // of ExpiresIn; 0 if unknown
	scopes   []string      // of Scope; nil if the server did not say
}

// tokenType returns the scheme of the token. Slack calls its bearer tokens "user".
func (a *tokenAnswer) tokenType() string {
	if strings.EqualFold(a.TokenType, oauth.SchemeDPoP) {
		return oauth.SchemeDPoP
	}
	return "Bearer"
}

// tokenRequest is a request to a token endpoint.
type tokenRequest struct {
	endpoint string
	issuer   string
	form     url.Values
	client   Registration
	dpop     *oauth.DPoPKey // nil to ask for a bearer token
}

// requestToken asks for a token, and once more if the server asks for a DPoP nonce.
func (t *Transport) requestToken(ctx context.Context, r tokenRequest) (*tokenAnswer, error) {
	for again := false; ; again = true {
		form, header := cloneForm(r.form), http.Header{}
		if err := t.authenticate(r, form, header); err != nil {
			return nil, err
		}
		if r.dpop != nil {
			if err := t.addProof(header, r.dpop, oauth.ProofClaims{Method: http.MethodPost, URL: r.endpoint}); err != nil {
				return nil, err
			}
		}
		a, err := t.postWhileLocked(ctx, r.endpoint, form, header)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be reached: %w", r.endpoint, err)
		}
		isNew := false
		if target, err := url.Parse(r.endpoint); err == nil && r.dpop != nil {
			isNew = t.noteNonce(target, a.header)
		}
		answered, err := readTokenAnswer(r.endpoint, a)
		var refused *TokenError
		if !again && isNew && errors.As(err, &refused) && refused.Code == "use_dpop_nonce" {
			continue
		}
		return answered, err
	}
}

// postWhileLocked sends a form. If a token of a record is among its values, the lock of the record
// must be held until it is sent: another process may use the same token afterwards.
func (t *Transport) postWhileLocked(ctx context.Context, endpoint string, form url.Values, header http.Header) (*answer, error) {
	ctx, cancel := oauth.UntilSent(ctx)
	defer cancel()
	a, err := t.fetcher.post(ctx, endpoint, "application/x-www-form-urlencoded", form.Encode(), header)
	if err != nil && errors.Is(context.Cause(ctx), oauth.ErrLockLost) {
		return nil, oauth.ErrLockLost
	}
	return a, err
}

func cloneForm(form url.Values) url.Values {
	c := make(url.Values, len(form)+3)
	for name, values := range form {
		c[name] = slices.Clone(values)
	}
	return c
}

// authenticate adds the client's authentication to a request.
func (t *Transport) authenticate(r tokenRequest, form url.Values, header http.Header) error {
	c := r.client
	switch c.AuthMethod {
	case methodBasic:
		pair := url.QueryEscape(c.ClientID) + ":" + url.QueryEscape(c.ClientSecret) // RFC 6749, section 2.3.1
		header["Authorization"] = []string{"Basic " + encodeBasic(pair)}
		return nil
	case methodPost:
		form.Set("client_secret", c.ClientSecret)
	case methodKey:
		assertion, err := t.opts.Client.signAssertion(c.ClientID, r.issuer, time.Now())
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	}
	if c.ClientID != "" {
		form.Set("client_id", c.ClientID)
	}
	return nil
}

// readTokenAnswer reads the answer of a token endpoint, in the forms that servers use.
func readTokenAnswer(endpoint string, a *answer) (*tokenAnswer, error) {
	var t tokenAnswer
	if !a.isJSON || json.Unmarshal(a.body, &t) != nil {
		return nil, a.refusal(endpoint, "", "")
	}
	if a.status != http.StatusOK && a.status != http.StatusCreated || t.Error != "" || string(t.OK) == "false" {
		return nil, a.refusal(endpoint, t.Error, t.ErrorDescription)
	}
	refused := &TokenError{Endpoint: endpoint, Status: a.status}
	if t.AccessToken == "" {
		refused.Description = "the answer has no access_token"
		return nil, refused
	}
	if strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		refused.Description = "the access token has characters that a header field cannot carry"
		return nil, refused
	}
	t.lifetime, t.scopes = readLifetime(t.ExpiresIn), readScopes(t.Scope)
	return &t, nil
}

// readLifetime returns the seconds of expires_in, or 0 if it is missing or no number.
func readLifetime(raw json.RawMessage) time.Duration {
	const maxSeconds = 100 * 365 * 24 * 3600
	seconds, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxSeconds)) * time.Second
}

// refusedAs reports whether an authorization server has refused a request with one of the codes.
func refusedAs(err error, codes ...string) bool {
	var refused *TokenError
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}
