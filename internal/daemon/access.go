package daemon

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// Access decides who may use an HTTP address of this user. Every program and every user of the
// machine can connect to a loopback address, and web pages can make a browser do so. So requests
// must carry a token, and pages must be allowed by their origin. It is safe for concurrent use.
type Access struct {
	// Advice ends the refusal of a request without a valid token. It must not change after the
	// first request.
	Advice   string
	store    *state.State
	settings atomic.Pointer[config.Gateway]
	// private is the token if the store cannot be written. nil means the stored token.
	private atomic.Pointer[string]
}

// NewAccess returns the access with the tokens of the settings, or else with the stored token. Call
// [Access.EnsureToken] before the first request.
func NewAccess(settings config.Gateway, store *state.State) *Access {
	a := &Access{Advice: tokenAdvice, store: store}
	a.settings.Store(&settings)
	return a
}

// EnsureToken stores a token if the access needs one and has none. created reports that it did. If
// the token cannot be stored, this process uses one of its own, and err is the reason.
func (a *Access) EnsureToken() (created bool, err error) {
	if a.Open() || a.UsesAuth() || a.Token() != "" {
		return false, nil
	}
	if _, err := a.store.Token(); err != nil {
		a.usePrivateToken()
		return false, fmt.Errorf("dowel cannot store its token, so the token of this run ends with it: %w", err)
	}
	return true, nil
}

func (a *Access) usePrivateToken() string {
	token := state.NewToken()
	a.private.Store(&token)
	return token
}

// Open reports whether every request is accepted.
func (a *Access) Open() bool { return a.settings.Load().Open }

// UsesAuth reports whether requests carry access tokens of an authorization server, in place of
// dowel's token.
func (a *Access) UsesAuth() bool { return a.settings.Load().Auth.IsSet() }

// CheckAddress returns an error if an open address can be reached by other machines.
func (a *Access) CheckAddress(at net.Addr) error {
	if tcp, ok := at.(*net.TCPAddr); a.Open() && !(ok && tcp.IP.IsLoopback()) {
		return fmt.Errorf("other machines can reach %s, so it cannot be open to everyone: use a loopback address such as 127.0.0.1, or the token", at)
	}
	return nil
}

// Update takes over the tokens of changed settings.
func (a *Access) Update(settings config.Gateway) {
	now := a.settings.Load()
	settings.Open, settings.Auth = now.Open, now.Auth // they wait for a restart
	a.settings.Store(&settings)
}

// Token returns the token that clients must send.
func (a *Access) Token() string {
	if fixed := a.settings.Load().Token; fixed != "" {
		return fixed
	}
	if private := a.private.Load(); private != nil {
		return *private
	}
	return a.store.StoredToken()
}

// HasTemporaryToken reports whether the token ends with this process, because it cannot be stored.
func (a *Access) HasTemporaryToken() bool {
	return a.settings.Load().Token == "" && a.private.Load() != nil
}

// RenewToken replaces the token. The old one is invalid at once. A token of the settings cannot be
// replaced here.
func (a *Access) RenewToken() (string, error) {
	settings := a.settings.Load()
	switch {
	case settings.Token != "":
		return "", fmt.Errorf("the configuration sets the token: change gateway.token in %s", settings.Where("token"))
	case a.private.Load() != nil:
		return a.usePrivateToken(), nil
	}
	return a.store.RenewToken()
}

// clientAdvice says how clients reach the gateway.
const clientAdvice = "see the header with dowel status --token, or let clients start dowel up --stdio, which needs no token: dowel export --to TOOL"

// tokenAdvice is the default of [Access.Advice].
const tokenAdvice = `let the client start "dowel up --stdio", which needs no token, or send the header that "dowel status --token" prints`

// Authorize returns the name of the client that a request belongs to, or "" if it has the token
// for everything. The error tells the client's user what to do.
func (a *Access) Authorize(r *http.Request) (client string, err error) {
	if a.Open() {
		return "", nil
	}
	sent := httpwire.BearerToken(r)
	if sent == "" {
		return "", errors.New("the request has no token: " + a.Advice)
	}
	if equalTokens(sent, a.Token()) {
		return "", nil
	}
	for name, c := range a.settings.Load().Clients {
		if equalTokens(sent, c.Token) {
			client = name
		}
	}
	if client == "" {
		return "", a.refusal()
	}
	return client, nil
}

func (a *Access) refusal() error {
	return errors.New("the token of the request is not valid: " + a.Advice)
}

// equalTokens compares in constant time. An empty token equals nothing.
func equalTokens(sent, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(sent), []byte(want)) == 1
}

// RequireToken returns a handler that passes requests with the token for everything to next.
func (a *Access) RequireToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client, err := a.Authorize(r); err != nil || client != "" {
			httpwire.RefuseUnauthorized(w, r, cmp.Or(err, a.refusal()).Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Protect refuses requests that a web page of another origin makes a browser send, unless the user
// has allowed the origin. In contrast to [streamable.Guard], pages of other ports of this machine
// are foreign, and reading requests are checked too.
func (o *ListenOptions) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origins := r.Header.Values("Origin")
		for _, origin := range origins {
			if !o.allowsOrigin(origin) && !isOwnOrigin(origin, r.Host) {
				httpwire.Refuse(w, http.StatusForbidden, "pages of the origin "+httpwire.QuoteShort(origin)+
					" may not use dowel. If they should, allow the origin with --origin, or gateway.origins in the configuration")
				return
			}
		}
		if len(origins) == 0 && isCrossSite(r) {
			httpwire.Refuse(w, http.StatusForbidden, "pages of other sites may not use dowel. If they should, allow their origin with --origin")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o *ListenOptions) allowsOrigin(origin string) bool {
	return slices.Contains(o.Origins, origin) || slices.Contains(o.Origins, "*")
}

// isOwnOrigin reports whether a page of an origin came from the requested host and port.
func isOwnOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// isCrossSite reports whether a browser sends the request for a page of another origin. A user who
// follows a link to /, which leads to the console, is not meant.
func isCrossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	isLink := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !isLink || r.URL.Path != "/"
}

// ErrOpen is the error of a question for the token of an open gateway.
var ErrOpen = errors.New("the gateway is open to everyone on this machine, so clients need no token: remove gateway.open from the configuration to change that")

// Token implements [control.Controller].
func (d *Daemon) Token(_ context.Context, renew bool) (string, error) {
	switch {
	case d.access.Open():
		return "", ErrOpen
	case d.access.UsesAuth():
		return "", ErrAuth
	case renew:
		return d.access.RenewToken()
	}
	return d.access.Token(), nil
}
