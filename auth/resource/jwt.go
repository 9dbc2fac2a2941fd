package resource

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// defaultAlgorithms are accepted if [Issuer.Algorithms] is empty. All are asymmetric; the option
// may name no others.
var defaultAlgorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// readAlgorithms returns the algorithms with the given names. It refuses symmetric algorithms: the
// key that verifies their signatures can also forge tokens.
func readAlgorithms(names []string) ([]jose.SignatureAlgorithm, error) {
	if len(names) == 0 {
		return defaultAlgorithms, nil
	}
	var all []jose.SignatureAlgorithm
	for _, name := range names {
		if !slices.Contains(defaultAlgorithms, jose.SignatureAlgorithm(name)) {
			return nil, fmt.Errorf("the algorithm %q is not usable: want some of %v", name, defaultAlgorithms)
		}
		all = append(all, jose.SignatureAlgorithm(name))
	}
	return all, nil
}

// issuerOf returns the configured issuer that a signed token names, or nil if the token does not
// name one. It reads the name before the signature is verified, only to choose the issuer to verify
// with. An error means that the token must not be sent to any issuer for introspection: another
// server issued it, or its payload is malformed.
func (s *Server) issuerOf(raw string) (*issuer, error) {
	header, rest, _ := strings.Cut(raw, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	if !isJWTHeader(header) || strings.Contains(signature, ".") {
		return nil, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil, errors.New("the payload of the token is not base64")
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(decoded, &c); err != nil {
		return nil, fmt.Errorf("the payload of the token: %w", err)
	}
	if c.Issuer == "" {
		return nil, nil
	}
	for _, i := range s.issuers {
		if i.URL == c.Issuer {
			return i, nil
		}
	}
	return nil, fmt.Errorf("the token has the issuer %.200q, which is none of Issuers", c.Issuer)
}

// isJWTHeader reports whether part is the header of a JWT, an object. Opaque tokens may have dots,
// too.
func isJWTHeader(part string) bool {
	decoded, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && len(decoded) > 0 && decoded[0] == '{'
}

// verifyJWT verifies the signature, the type and the claims of a signed token (RFC 9068, RFC 8725).
func (i *issuer) verifyJWT(ctx context.Context, raw string, now time.Time) (*Token, error) {
	signed, err := jose.ParseSignedCompact(raw, i.algorithms)
	if err != nil {
		return nil, fmt.Errorf("the token is not a JWS of %v: %w", i.algorithms, err)
	}
	header := signed.Signatures[0].Protected
	kind, err := i.checkType(header)
	if err != nil {
		return nil, err
	}
	keys, err := i.keys.findKeys(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	payload, err := verifySignature(signed, keys)
	if err != nil {
		return nil, fmt.Errorf("the signature of the token with the key %.100q of %s: %w", header.KeyID, i.URL, err)
	}
	c, err := readClaims(payload)
	if err != nil {
		return nil, fmt.Errorf("the payload of the token: %w", err)
	}
	if kind != accessTokenType {
		if err := c.checkAccess(); err != nil {
			return nil, err
		}
	}
	return i.newToken(c, payload, now)
}

const accessTokenType = "at+jwt"

// checkType returns the type of a token in lower case. Tokens for other purposes have types of
// their own, which are refused.
func (i *issuer) checkType(h jose.Header) (string, error) {
	sent, _ := h.ExtraHeaders[jose.HeaderType].(string)
	kind := strings.TrimPrefix(strings.ToLower(sent), "application/")
	switch {
	case kind == accessTokenType, !i.RequireType && (kind == "jwt" || kind == ""):
		return kind, nil
	}
	return "", fmt.Errorf("the token has typ %.100q, want %s", sent, accessTokenType)
}

// checkAccess returns an error unless a token without the type at+jwt has the claims of an access
// token. An ID token can have the same audience and the same claims about the user, but it has no
// scopes. Roles count only in a token that names its client: Entra's ID tokens have roles, too, but
// name no client.
func (c *claims) checkAccess() error {
	switch {
	case c.Nonce != nil || c.TokenHash != nil || c.CodeHash != nil || c.isForOtherUse():
		return errors.New("the token is an ID token or a refresh token, not an access token")
	case c.Scope != nil || c.Scopes != nil, len(c.Roles) > 0 && string(c.Roles) != "null" && c.client() != "":
		return nil
	}
	return fmt.Errorf("the token has neither scope, scp, nor roles of a client: it may be an ID token. An access token has one of them, or the type %s", accessTokenType)
}

// isForOtherUse reports whether a token says that it is none for access: Keycloak says so in typ,
// Cognito in token_use.
func (c *claims) isForOtherUse() bool {
	return c.TokenUse == "id" || slices.Contains([]string{"ID", "Refresh", "Offline", "Logout"}, c.Type)
}

// verifySignature returns the payload if one of the keys verifies its signature. Otherwise it
// returns the error of the last key.
func verifySignature(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, error) {
	err := errors.New("no such key")
	for _, key := range keys {
		var payload []byte
		if payload, err = signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}
	return nil, err
}
