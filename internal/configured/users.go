package configured

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// userLogins are the logins of the gateway's users at one server. Each user has an [auth.Transport]
// with tokens of its own.
type userLogins struct {
	d    *config.Definition
	opts auth.Options // without the parts of a user

	mu    sync.Mutex
	users map[string]*userLogin // by the key of the connection
}

// userLogin is the login of one user.
type userLogin struct {
	client    *http.Client
	transport *userTransport // of client
	token     string         // the newest token of the user for the gateway; guarded by userLogins.mu
	used      time.Time      // guarded by userLogins.mu
}

// maxUserLogins bounds the logins in memory at one server. The one unused for longest makes room;
// its user gets a new one from the store or by an exchange.
const maxUserLogins = 1000

// newUserLogins returns the logins of the users at a server. A nil store keeps none.
func newUserLogins(d *config.Definition, store auth.Store) (*userLogins, error) {
	if err := checkLogin(d); err != nil {
		return nil, fmt.Errorf("oauth.per cannot be user: %w", err)
	}
	o, err := loginOptions(d)
	if err != nil {
		return nil, err
	}
	o.ClientCredentials = false // that is how the lists are read
	if o.Store = store; store == nil {
		o.Store = auth.NewStore()
	}
	return &userLogins{d: d, opts: *o, users: map[string]*userLogin{}}, nil
}

// loginFor implements the LoginFor of [hub.Definition]. A request without an access token comes
// from the owner of dowel, who is the shared account.
func (l *userLogins) loginFor(ctx context.Context, _ hub.Caller) (key string, login *http.Client, err error) {
	a, token := httpwire.AuthorizationFrom(ctx), resource.FromContext(ctx)
	if a == nil || token == nil {
		return "", nil, nil
	}
	if key = a.Principal.ID; l.d.OAuth.Exchange != "" {
		key = userKey(a.Principal.ID, token)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[key]
	if u == nil {
		if u, err = l.newUserLogin(a.Principal.ID); err != nil {
			return "", nil, err
		}
		l.makeRoom()
		l.users[key] = u
	}
	u.token, u.used = a.Raw, time.Now()
	return key, u.client, nil
}

// userKey identifies the tokens that a user gets for a token of the gateway. A client with fewer
// scopes must not use what a client with more has got for the same user.
func userKey(principal string, t *resource.Token) string {
	scopes := slices.Sorted(slices.Values(t.Scopes))
	return strings.Join(append([]string{principal, t.ClientID}, scopes...), "\x00")
}

// makeRoom removes the login that was unused for longest if there are too many. l.mu is held.
func (l *userLogins) makeRoom() {
	if len(l.users) < maxUserLogins {
		return
	}
	oldest := ""
	for key, u := range l.users {
		if oldest == "" || u.used.Before(l.users[oldest].used) {
			oldest = key
		}
	}
	delete(l.users, oldest)
}

// newUserLogin returns the login of a user. Exchanged tokens stay in memory; tokens of a login in a
// browser go to the store. l.mu is held.
func (l *userLogins) newUserLogin(principal string) (*userLogin, error) {
	u, o := &userLogin{}, l.userOptions(principal)
	if l.d.OAuth.Exchange != "" {
		o.Store = auth.NewStore()
	}
	subject := func(context.Context) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return u.token, nil
	}
	switch l.d.OAuth.Exchange {
	case "":
	case config.ExchangeIDJAG:
		idp := &auth.Enterprise{
			TokenURL: l.d.OAuth.IDPTokenURL, ClientID: l.d.OAuth.IDPClientID, ClientSecret: l.d.OAuth.IDPClientSecret, AccessToken: subject,
		}
		o.Assertion = idp.Assert
	default:
		o.Subject, o.OnBehalfOf = subject, l.d.OAuth.Exchange == config.ExchangeEntra
	}
	t, err := newLoginTransport(l.d.URL, &o)
	if err != nil {
		return nil, err
	}
	u.transport = &userTransport{mayAsk: l.d.OAuth.Exchange == ""}
	u.transport.login.Store(t)
	u.client = &http.Client{Transport: u.transport}
	return u, nil
}

// userOptions returns the options of a user's logins. Redirects go to the gateway, not to the
// loopback address of the owner's logins.
func (l *userLogins) userOptions(principal string) auth.Options {
	o := l.opts
	o.Account = l.opts.Account + " user " + principal
	o.Client.RedirectURI, o.Client.DocumentURL = "", ""
	return o
}

// UserLogin is a login of a user of the gateway at a server.
type UserLogin struct {
	Principal string
	Issuer    string // that has issued the token of the user for the gateway
	// Run logs in and stores the tokens for the principal.
	Run func(ctx context.Context, login auth.Login) error
}

// UserLogin returns the login that the user of a request can make at a server with a browser. ok is
// false if there is none, as without a hub.
func (s *Source) UserLogin(ctx context.Context, server string) (login UserLogin, ok bool) {
	if s.hub == nil {
		return login, false
	}
	a, token := httpwire.AuthorizationFrom(ctx), resource.FromContext(ctx)
	u := s.hub.Upstream(server)
	if a == nil || token == nil || u == nil || u.Definition().LoginFor == nil {
		return login, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.users {
		if l.d.Server.Name == server && l.d.OAuth.Exchange == "" && isDefinitionOf(u.Definition().Fingerprint, l.d) {
			return UserLogin{Principal: a.Principal.ID, Issuer: token.Issuer, Run: func(ctx context.Context, login auth.Login) error {
				return l.runLogin(ctx, a.Principal.ID, login)
			}}, true
		}
	}
	return login, false
}

// runLogin logs a user in, and makes the connection of the user use that.
func (l *userLogins) runLogin(ctx context.Context, principal string, login auth.Login) error {
	o := l.userOptions(principal)
	l.mu.Lock()
	u := l.users[principal]
	l.mu.Unlock()
	var scopes []string
	if u != nil {
		scopes = u.transport.lackedScopes()
	}
	asking := o
	asking.Login = login
	t, err := auth.NewTransport(l.d.URL, &asking)
	if err != nil {
		return err
	}
	if err := t.Login(ctx, scopes...); err != nil || u == nil {
		return err
	}
	stored, err := newLoginTransport(l.d.URL, &o)
	if err == nil {
		u.transport.setLogin(stored, scopes)
	}
	return err
}

// usersOf returns the logins of the users at a server. They stay the same until a change of the
// entry restarts the server. s.mu is held.
func (s *Source) usersOf(at entryKey, d *config.Definition) (*userLogins, error) {
	if !s.set.Gateway.Auth.IsSet() {
		return nil, fmt.Errorf("oauth.per at %v is user, and without gateway.auth the gateway does not know its users", d.Server.Where("oauth.per"))
	}
	if l := s.users[at]; l != nil && l.d.Fingerprint() == d.Fingerprint() {
		return l, nil
	}
	l, err := newUserLogins(d, s.opts.Logins)
	if err != nil {
		return nil, err
	}
	s.users[at] = l
	return l, nil
}
