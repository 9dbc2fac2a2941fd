package configured

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// userTransport authorizes the requests of one user. Another login can replace its login, because a
// refusal for lack of scopes does not make an [auth.Transport] read the store.
type userTransport struct {
	login  atomic.Pointer[LoginTransport]
	mayAsk bool // the user can log in with a browser

	mu     sync.Mutex
	lacked []string // scopes that the next login asks for; guarded by mu
	asked  []string // scopes that the last login has asked for; guarded by mu
}

// LoginID identifies the login for the client's private results.
func (t *userTransport) LoginID() string { return t.login.Load().LoginID() }

// RoundTrip implements [http.RoundTripper]. A request that lacks scopes needs another login, unless
// the last one has asked for these scopes: that has not helped.
func (t *userTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.login.Load().RoundTrip(r)
	if err == nil || !t.mayAsk {
		return resp, err
	}
	var lacks *auth.ScopeNeeded
	if !errors.As(err, &lacks) {
		return resp, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	isNew := func(scope string) bool { return !slices.Contains(t.asked, scope) }
	if !slices.ContainsFunc(lacks.Scopes, isNew) {
		return resp, err
	}
	t.lacked = slices.Concat(lacks.Granted, lacks.Scopes)
	slices.Sort(t.lacked)
	t.lacked = slices.Compact(t.lacked)
	return resp, &httpwire.RefusalError{Err: err, NeedsLogin: true}
}

// lackedScopes returns the scopes that the next login asks for in addition to the usual ones.
func (t *userTransport) lackedScopes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacked
}

// setLogin replaces the login by one that has asked for more scopes.
func (t *userTransport) setLogin(login *LoginTransport, asked []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.login.Store(login)
	t.asked = asked
}
