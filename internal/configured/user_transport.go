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
	if again := t.adoptLogin(r); again != nil {
		if resp, err = t.login.Load().RoundTrip(again); !errors.As(err, &lacks) {
			return resp, err
		}
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

// adoptLogin takes over a login that another replica or process has stored since, and returns r to
// be sent again. It returns nil without such a login, or if r cannot be sent again.
func (t *userTransport) adoptLogin(r *http.Request) *http.Request {
	if r.GetBody == nil && r.Body != nil && r.Body != http.NoBody {
		return nil
	}
	old := t.login.Load()
	stored, err := old.opts.Store.Load(r.Context(), auth.RecordKey(old.server, old.opts.Account))
	if err != nil || stored == nil || stored.LoginID == "" || stored.LoginID == old.LoginID() {
		return nil
	}
	fresh, err := newLoginTransport(old.server, &old.opts)
	if err != nil {
		return nil
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil
		}
	}
	t.login.CompareAndSwap(old, fresh)
	return again
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
