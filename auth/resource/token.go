package resource

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// Token is an access token that was verified. Requests with the same token share it: only
// [Options.Check] may change it.
type Token struct {
	Issuer   string
	Subject  string // the user; equal to ClientID, or empty, if the client acts for itself
	ClientID string
	Scopes   []string // with the implied ones of [Options.ImpliedScopes]
	Audience []string
	Expires  time.Time
	// Claims are all claims of a signed token, or the answer about an opaque one: an object.
	Claims json.RawMessage

	keyThumbprint string // of the DPoP key that the token is bound to, or empty
	forAllPaths   bool   // the audience is the whole server
}

// FromContext returns the token of the request that a handler serves, or nil if no [Server] has let
// the request pass.
func FromContext(ctx context.Context) *Token {
	a := httpwire.AuthorizationFrom(ctx)
	if a == nil {
		return nil
	}
	t, _ := a.Token.(*Token)
	return t
}

// principal returns the user of the token. The ids of two issuers differ, because an issuer has
// neither a query nor a fragment (RFC 8414, section 2).
func (t *Token) principal() mcp.Principal {
	id := t.Issuer + "#" + t.Subject
	if t.Subject == "" {
		id = t.Issuer + "?" + t.ClientID
	}
	return mcp.Principal{ID: id, Scopes: t.Scopes}
}

// claims are the claims that this package reads, of a JWT or of an answer about an opaque token.
type claims struct {
	Issuer    string          `json:"iss"`
	Subject   string          `json:"sub"`
	Audience  stringList      `json:"aud"`
	Expires   *float64        `json:"exp"`
	NotBefore *float64        `json:"nbf"`
	IssuedAt  *float64        `json:"iat"`
	ClientID  string          `json:"client_id"`
	Party     string          `json:"azp"` // the client in tokens of Keycloak and Entra
	AppID     string          `json:"appid"`
	Scope     stringList      `json:"scope"`
	Scopes    stringList      `json:"scp"` // of Entra and Okta
	Roles     json.RawMessage `json:"roles"`
	Confirm   map[string]any  `json:"cnf"`
	Active    bool            `json:"active"` // of introspection
	Nonce     json.RawMessage `json:"nonce"`  // of ID tokens, like the next three
	TokenHash json.RawMessage `json:"at_hash"`
	CodeHash  json.RawMessage `json:"c_hash"`
	TokenUse  string          `json:"token_use"` // of Cognito
	Type      string          `json:"typ"`       // of Keycloak
}

// client returns the client that the token was issued to, or "".
func (c *claims) client() string { return cmp.Or(c.ClientID, c.Party, c.AppID) }

// stringList is a string or an array of strings. It is nil if there is neither.
type stringList []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *stringList) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		switch {
		case string(raw) == "null":
			*l = nil
		case one == "":
			*l = stringList{}
		default:
			*l = stringList{one}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(l))
}

// scopes returns the scopes of all claims that name some.
func (c *claims) scopes() []string {
	var all []string
	for _, value := range slices.Concat(c.Scope, c.Scopes) {
		all = append(all, strings.Fields(value)...)
	}
	return all
}

// addImplied adds the scopes that the scopes include, also indirectly.
func addImplied(scopes []string, implied map[string][]string) []string {
	for i := 0; i < len(scopes); i++ {
		for _, scope := range implied[scopes[i]] {
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}
