package config

import "strings"

// oauthStrings are the string fields of [OAuth], each with its names in the tools' files.
var oauthStrings = []struct {
	field string
	of    func(*OAuth) *string
	names []string
}{
	{"clientId", func(o *OAuth) *string { return &o.ClientID }, []string{"clientId", "client_id", "CLIENT_ID"}},
	{"clientSecret", func(o *OAuth) *string { return &o.ClientSecret }, []string{"clientSecret", "client_secret", "CLIENT_SECRET"}},
	{"privateKey", func(o *OAuth) *string { return &o.PrivateKey }, []string{"privateKey"}},
	{"clientDocument", func(o *OAuth) *string { return &o.ClientDocument }, []string{"clientDocument"}},
	{"issuer", func(o *OAuth) *string { return &o.Issuer }, []string{"issuer"}},
	{"metadataUrl", func(o *OAuth) *string { return &o.MetadataURL }, []string{"metadataUrl", "authServerMetadataUrl"}},
	{"authorizationUrl", func(o *OAuth) *string { return &o.AuthorizationURL }, []string{"authorizationUrl", "authorization_url"}},
	{"tokenUrl", func(o *OAuth) *string { return &o.TokenURL }, []string{"tokenUrl", "token_url"}},
	{"redirectUri", func(o *OAuth) *string { return &o.RedirectURI }, []string{"redirectUri", "redirect_uri"}},
	{"callbackPort", func(o *OAuth) *string { return &o.CallbackPort }, []string{"callbackPort"}},
	{"resource", func(o *OAuth) *string { return &o.Resource }, []string{"resource"}},
	{"idpTokenUrl", func(o *OAuth) *string { return &o.IDPTokenURL }, []string{"idpTokenUrl"}},
	{"idpClientId", func(o *OAuth) *string { return &o.IDPClientID }, []string{"idpClientId"}},
	{"idpClientSecret", func(o *OAuth) *string { return &o.IDPClientSecret }, []string{"idpClientSecret"}},
	{"account", func(o *OAuth) *string { return &o.Account }, []string{"account"}},
}

// readOAuth reads the object, or false for off.
func (e *entryReader) readOAuth(field string, n *node) {
	if e.s.OAuth == nil {
		e.s.OAuth = &OAuth{}
	}
	if n.kind == boolNode {
		e.s.OAuth.Off = n.text == "false"
		return
	}
	if !e.expectKind(field, n, objectNode) {
		return
	}
	for _, m := range n.members {
		e.readOAuthMember(field+"."+m.key.text, m.key.text, m)
	}
	e.checkUserLogin(n)
}

func (e *entryReader) readOAuthMember(field, name string, m member) {
	switch name {
	case "scopes", "scope":
		e.readScopes(field, m.value)
		return
	case "enabled":
		on := true
		e.readBool(field, m.value, &on)
		e.s.OAuth.Off = !on
		return
	case "params", "authorizationParams", "extra_params":
		e.readStringMap("oauth.params", m.value, &e.s.OAuth.Params)
		return
	case "grant":
		e.readGrant(m.value)
		return
	case "per", "exchange":
		e.readUserLogin(name, m.value)
		return
	case "dpop":
		e.readBool("oauth.dpop", m.value, &e.s.OAuth.DPoP)
		return
	case "assumePKCE":
		e.readBool("oauth.assumePKCE", m.value, &e.s.OAuth.AssumePKCE)
		return
	}
	for _, known := range oauthStrings {
		for _, n := range known.names {
			if n == name {
				e.readOAuthString(known.field, m.value)
				return
			}
		}
	}
	e.addUnknown(field, m.key.at, "", "dowel does not use it")
}

func (e *entryReader) readOAuthString(field string, n *node) {
	for _, known := range oauthStrings {
		if known.field == field {
			if e.s.OAuth == nil {
				e.s.OAuth = &OAuth{}
			}
			if field == "callbackPort" && n.kind == numberNode {
				n = &node{kind: stringNode, text: n.text, at: n.at}
			}
			e.readString("oauth."+field, n, known.of(e.s.OAuth))
		}
	}
	if field == "resource" && n.is(stringNode) && n.text == "" {
		e.s.OAuth.Resource = OmitResource
	}
}

// readGrant reads how the client logs in.
func (e *entryReader) readGrant(n *node) {
	e.readString("oauth.grant", n, &e.s.OAuth.Grant)
	switch e.s.OAuth.Grant {
	case "interactive", "":
		e.s.OAuth.Grant = ""
	case ClientCredentials:
	default:
		e.errorf(n.at, "want interactive or "+ClientCredentials, "oauth.grant cannot be %q", e.s.OAuth.Grant)
	}
}

// readScopes reads a list, or one string separated by spaces.
func (e *entryReader) readScopes(field string, n *node) {
	if e.s.OAuth == nil {
		e.s.OAuth = &OAuth{}
	}
	if n.kind != stringNode {
		e.readStrings("oauth.scopes", n, &e.s.OAuth.Scopes)
		return
	}
	for _, scope := range strings.Fields(n.text) {
		e.s.OAuth.Scopes = append(e.s.OAuth.Scopes, scope)
		e.recordPosition("oauth.scopes", n)
	}
}
