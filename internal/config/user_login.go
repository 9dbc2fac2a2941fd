package config

// Values of the key oauth.per: whose account the calls of the gateway's users use.
const (
	// PerUser is the account of each user.
	PerUser = "user"
	// PerShared is one account for all.
	PerShared = "shared"
)

// readUserLogin reads oauth.per or oauth.exchange. A project must not choose them: the tokens of
// the gateway's users go to the authorization server of the entry.
func (e *entryReader) readUserLogin(name string, n *node) {
	if e.s.Scope == Project {
		e.errorf(n.at, "write the server into your own file", "oauth.%s has no place in a project's file, which must not get the tokens of users", name)
		return
	}
	if name == "exchange" {
		e.readOneOf("oauth.exchange", n, []string{ExchangeToken, ExchangeEntra, ExchangeIDJAG}, &e.s.OAuth.Exchange)
		return
	}
	var per string
	e.readOneOf("oauth.per", n, []string{PerShared, PerUser}, &per)
	e.s.OAuth.PerUser = per == PerUser
}

// checkUserLogin reports what the logins of users lack. n is the object oauth.
func (e *entryReader) checkUserLogin(n *node) {
	o := e.s.OAuth
	switch {
	case o.Exchange == "":
		return
	case !o.PerUser:
		e.errorf(n.at, `write "per": "user" beside it`, "oauth.exchange exchanges the tokens of users, and oauth.per is shared")
	case o.Issuer == "" || o.ClientID == "":
		e.errorf(n.at, "write both into oauth", "oauth.exchange needs issuer and clientId: the server must not choose who gets the tokens of users")
	case o.Exchange == ExchangeIDJAG && o.IDPTokenURL == "":
		e.errorf(n.at, "write the token endpoint of your identity provider into oauth", `oauth.exchange "%s" needs idpTokenUrl`, o.Exchange)
	}
}
