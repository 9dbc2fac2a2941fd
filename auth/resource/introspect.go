package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// introspect asks the issuers in order about a token that names no issuer, until one of
// them knows it.
func (s *Server) introspect(ctx context.Context, raw string) (*Token, error) {
	failures := []error{errors.New("the token is not a JWT that names an issuer, and cannot be looked up")}
	for _, i := range s.issuers {
		if i.Introspection == nil {
			continue
		}
		t, err := i.introspect(ctx, raw, s.now())
		if err == nil {
			return t, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// introspect asks the issuer about a token (RFC 7662).
func (i *issuer) introspect(ctx context.Context, raw string, now time.Time) (*Token, error) {
	address, err := i.endpoint(ctx, i.Introspection.URL, "introspection_endpoint", func(m *oauth.ServerMetadata) string { return m.IntrospectionEndpoint })
	if err != nil {
		return nil, &unavailableError{err}
	}
	form := url.Values{"token": {raw}, "token_type_hint": {"access_token"}}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &unavailableError{err}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if i.Introspection.ClientID != "" { // both parts are encoded: RFC 6749, section 2.3.1
		r.SetBasicAuth(url.QueryEscape(i.Introspection.ClientID), url.QueryEscape(i.Introspection.ClientSecret))
	}
	var answer json.RawMessage
	if _, err := i.readDocument(r, &answer); err != nil {
		i.renewMetadata(ctx)
		return nil, &unavailableError{fmt.Errorf("introspection: %w", err)}
	}
	c, err := readClaims(answer)
	switch {
	case err != nil:
		return nil, &unavailableError{fmt.Errorf("introspection at %s: %w", i.URL, err)}
	case !c.Active:
		return nil, fmt.Errorf("%s says that the token is not active", i.URL)
	case c.isForOtherUse(): // servers call their refresh tokens active, too
		return nil, fmt.Errorf("%s says that the token is an ID token or a refresh token", i.URL)
	case c.Issuer == "":
		c.Issuer = i.URL // optional in an answer, which comes from the issuer anyway
	}
	return i.newToken(c, answer, now)
}
