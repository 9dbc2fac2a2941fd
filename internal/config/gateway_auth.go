package config

import (
	"fmt"
	"maps"
	"slices"
)

// GatewayAuth makes the gateway a resource server of OAuth: its clients send access tokens of
// authorization servers in place of dowel's token. The zero value means dowel's token.
type GatewayAuth struct {
	// URL is the address of the gateway as clients know it, without /mcp. "" means the listen
	// address, if only this machine can reach it.
	URL string
	// Issuers are the authorization servers whose tokens are accepted.
	Issuers []string
	// Audiences are values of aud that mean the gateway, besides its URL.
	Audiences []string
	// Scopes are needed by every request.
	Scopes []string
	// Servers are scopes that are needed to use a server, by its name.
	Servers map[string][]string
	// DPoP says whether tokens should be bound to a key: "", offered or required.
	DPoP string
	// RequireType refuses signed tokens without the type at+jwt.
	RequireType bool
	// ClientID and ClientSecret are credentials with which the issuer, the only one then, is asked
	// about opaque tokens. Without them, only signed tokens are accepted.
	ClientID, ClientSecret string

	isBroken bool // a mistake in the object could let more requests in than the user wants
}

// IsSet reports whether the gateway accepts access tokens.
func (a GatewayAuth) IsSet() bool { return len(a.Issuers) > 0 }

var gatewayAuthKeys = []string{"url", "issuers", "audiences", "scopes", "servers", "dpop", "requireType", "clientId", "clientSecret"}

// readGatewayAuth reads the object gateway.auth. An unknown key is an error here: it may be a
// misspelled condition.
func (e *entryReader) readGatewayAuth(field string, n *node, into *GatewayAuth) {
	e.recordPosition(field, n)
	before := len(e.s.Problems)
	defer func() {
		into.isBroken = slices.ContainsFunc(e.s.Problems[before:], func(p Problem) bool { return p.Severity == Error })
	}()
	if !e.expectKind(field, n, objectNode) {
		return
	}
	texts := map[string]*string{"url": &into.URL, "clientId": &into.ClientID, "clientSecret": &into.ClientSecret}
	lists := map[string]*[]string{"issuers": &into.Issuers, "audiences": &into.Audiences, "scopes": &into.Scopes}
	for _, m := range n.members {
		name := field + "." + m.key.text
		switch text, list := texts[m.key.text], lists[m.key.text]; {
		case text != nil:
			e.readString(name, m.value, text)
		case list != nil:
			e.readStrings(name, m.value, list)
		case m.key.text == "servers":
			e.readServerScopes(name, m.value, &into.Servers)
		case m.key.text == "requireType":
			e.readBool(name, m.value, &into.RequireType)
		case m.key.text == "dpop":
			e.readOneOf(name, m.value, []string{"offered", "required"}, &into.DPoP)
		default:
			e.errorf(m.key.at, suggestOrList(m.key.text, gatewayAuthKeys), "dowel does not know the key %s", name)
		}
	}
	if !into.IsSet() {
		e.errorf(n.at, `write "issuers": ["https://login.example.com"], or remove `+field, "%s names no authorization server", field)
	}
}

func (e *entryReader) readServerScopes(field string, n *node, into *map[string][]string) {
	e.recordPosition(field, n)
	if !e.expectKind(field, n, objectNode) {
		return
	}
	*into = map[string][]string{}
	for _, m := range n.members {
		var scopes []string
		e.readStrings(field+"."+m.key.text, m.value, &scopes)
		(*into)[m.key.text] = scopes
	}
}

// expandAuth expands the variables of gateway.auth. expand takes the name of a field and its text.
func (g Gateway) expandAuth(expand func(field, text string) string) GatewayAuth {
	a := g.Auth
	a.URL, a.ClientID, a.ClientSecret = expand("auth.url", a.URL), expand("auth.clientId", a.ClientID), expand("auth.clientSecret", a.ClientSecret)
	a.Issuers, a.Audiences, a.Scopes = slices.Clone(a.Issuers), slices.Clone(a.Audiences), slices.Clone(a.Scopes)
	for _, list := range []struct {
		field string
		texts []string
	}{{"issuers", a.Issuers}, {"audiences", a.Audiences}, {"scopes", a.Scopes}} {
		for i, text := range list.texts {
			list.texts[i] = expand(fmt.Sprintf("auth.%s[%d]", list.field, i), text)
		}
	}
	return a
}

// checkAuth returns the contradictions between gateway.auth and the keys for dowel's token.
func (g Gateway) checkAuth() (problems []Problem) {
	if g.Auth.isBroken {
		problems = append(problems, Problem{Severity: Error, Position: g.Where("auth"), Message: "gateway.auth has mistakes", Hint: "correct them, or remove gateway.auth"})
	}
	if !g.Auth.IsSet() {
		return problems
	}
	if len(g.Auth.Issuers) > 1 && g.Auth.ClientID+g.Auth.ClientSecret != "" {
		problems = append(problems, Problem{
			Severity: Error, Position: g.Where("auth.clientId"),
			Message: fmt.Sprintf("gateway.auth names %d issuers, and each of them would get the credentials clientId and clientSecret", len(g.Auth.Issuers)),
			Hint:    "name one issuer, or remove clientId and clientSecret to accept signed tokens only",
		})
	}
	refuse := func(field, message string) {
		problems = append(problems, Problem{Severity: Error, Position: g.Where(field), Message: message, Hint: "remove one of the two"})
	}
	if g.Open {
		refuse("open", "gateway.open lets everyone in, and gateway.auth asks for access tokens")
	}
	if g.Token != "" {
		refuse("token", "gateway.auth asks for access tokens, so gateway.token would have no effect")
	}
	for _, name := range slices.Sorted(maps.Keys(g.Clients)) {
		if g.Clients[name].Token != "" {
			field := "clients." + name + ".token"
			refuse(field, "gateway.auth asks for access tokens, so gateway."+field+" would have no effect")
		}
	}
	return problems
}
