package authtest

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Types of tokens (RFC 8693, section 3, and the draft of the ID-JAG).
const (
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	typeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG       = "urn:ietf:params:oauth:token-type:id-jag"
)

// grantExchange exchanges the token of a user (RFC 8693): for an access token, or for an ID-JAG
// that another server accepts. Only a client with a secret may do that.
func (s *Server) grantExchange(t *tokenRequest) {
	claims, ok := s.readOwn(t.form.Get("subject_token"), "")
	subjectType := t.form.Get("subject_token_type")
	switch {
	case t.client.Secret == "":
		t.refuse("unauthorized_client", "want a client with a secret")
		return
	case subjectType != typeAccessToken && subjectType != typeIDToken:
		t.refuse("invalid_request", "unknown subject_token_type "+subjectType)
		return
	case !ok:
		t.refuse("invalid_grant", "the subject token is not one of this server's, or has expired")
		return
	}
	user, _ := claims["sub"].(string)
	if t.form.Get("requested_token_type") == typeIDJAG {
		t.answerIDJAG(user)
		return
	}
	t.answerFor(user, typeAccessToken)
}

// answerFor issues an access token for a user whose own token was exchanged.
func (t *tokenRequest) answerFor(user, issuedType string) {
	scopes := strings.Fields(t.form.Get("scope"))
	if code, description := t.s.checkScopes(scopes); code != "" {
		t.refuse(code, description)
		return
	}
	t.issuedType = issuedType
	t.answer(&grant{client: t.client, scopes: scopes, resources: t.form["resource"], user: user, family: newSecret("family")}, scopes, false)
}

// answerIDJAG answers with an assertion for the server that the parameter audience names.
func (t *tokenRequest) answerIDJAG(user string) {
	now := t.s.Now()
	assertion := t.s.Sign(map[string]any{"typ": "oauth-id-jag+jwt"}, map[string]any{
		"iss": t.s.Issuer, "sub": user, "aud": t.form.Get("audience"), "resource": t.form.Get("resource"), "client_id": t.client.ID,
		"scope": t.form.Get("scope"), "jti": newSecret("jwt"), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	})
	writeJSON(t.w, 200, map[string]any{"access_token": assertion, "issued_token_type": typeIDJAG, "token_type": "N_A", "expires_in": 300})
}

// grantAssertion accepts an ID-JAG of [Options.IdentityProvider], or a token of a user with
// requested_token_use=on_behalf_of, as Entra does.
func (s *Server) grantAssertion(t *tokenRequest) {
	assertion := t.form.Get("assertion")
	if t.form.Get("requested_token_use") == "on_behalf_of" {
		claims, ok := s.readOwn(assertion, "")
		switch {
		case t.client.Secret == "" || !ok:
			t.refuse("invalid_grant", "AADSTS50013: want a client with a secret and a token of this server")
		case t.form.Has("resource"):
			t.refuse("invalid_request", "AADSTS9010010: the parameter resource is refused")
		case t.form.Get("scope") == "":
			t.refuse("invalid_request", "AADSTS90014: the parameter scope is missing")
		default:
			user, _ := claims["sub"].(string)
			t.answerFor(user, "")
		}
		return
	}
	idp := s.options.IdentityProvider
	if idp == nil {
		t.refuse("unsupported_grant_type", "this server trusts no identity provider")
		return
	}
	claims, ok := idp.readOwn(assertion, "oauth-id-jag+jwt")
	switch {
	case !ok || claims["aud"] != s.Issuer:
		t.refuse("invalid_grant", "the assertion is not one of the identity provider's for this server, or has expired")
	case claims["resource"] != "" && !slices.Contains(t.form["resource"], claims["resource"].(string)):
		t.refuse("invalid_target", "resource differs from the assertion")
	default:
		user, _ := claims["sub"].(string)
		t.answerFor(user, "")
	}
}

// readOwn returns the claims of a JWT that this server has signed and that has not expired.
// wantType is the type in its header, or "" for a token of a user.
func (s *Server) readOwn(token, wantType string) (claims map[string]any, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	var header struct{ Kid, Typ string }
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 || !parsePart(parts[0], &header) || !parsePart(parts[1], &claims) {
		return nil, false
	}
	if wantType != "" && header.Typ != wantType || wantType == "" && header.Typ == "oauth-id-jag+jwt" {
		return nil, false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, v := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	s.mu.Lock()
	defer s.mu.Unlock()
	signed := slices.ContainsFunc(s.keys, func(k *signingKey) bool {
		return k.id == header.Kid && ecdsa.Verify(&k.private.PublicKey, sum[:], r, v)
	})
	exp, _ := claims["exp"].(float64)
	issued := s.access[token]
	return claims, signed && s.now().Unix() < int64(exp) && (issued == nil || !issued.revoked)
}

func parsePart(part string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(text, into) == nil
}
