// Package userlogin lets the users of a gateway log in at its upstreams with a browser. A user gets
// the address of a page by a URL elicitation. The page checks that this user has opened it, and
// then sends the browser to the authorization server of the upstream.
//
// An address alone proves nothing: a user can send it to another one, so that the other one logs
// in for the account of the first (client/elicitation: phishing). So the page begins with a login
// at the gateway's own authorization server, for a token for the gateway. Its principal must be
// the principal of the refused request. A cookie binds all steps of an attempt to one browser.
package userlogin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// Prefix begins the paths of the pages. CallbackPath is the path of redirects from authorization
// servers.
const (
	Prefix       = "/login/"
	CallbackPath = Prefix + "callback"
)

const (
	// flowLifetime is how long an address can be used.
	flowLifetime = 10 * time.Minute
	// announceTimeout bounds how long the other replicas may take to hear of a new flow.
	announceTimeout = 10 * time.Second
	// maxFlows bounds the addresses that can be used at a time.
	maxFlows = 10_000
)

// Options configure [Pages]. URL, Resource and Protect are required.
type Options struct {
	// URL is the address of the gateway as browsers know it, without a path.
	URL string
	// Resource is the URL of the gateway's MCP endpoint.
	Resource string
	// Protect returns a handler that passes requests with an access token for the gateway.
	Protect func(next http.Handler) http.Handler
	// Client is the gateway's registration at its authorization server. The zero value registers
	// dynamically.
	Client auth.Client
	// Network and Values connect the replicas of the gateway; nil without them.
	Network replica.Network
	Values  replica.Values
	// Logger receives the reasons of failed logins. nil means [slog.Default].
	Logger *slog.Logger
}

// Login is a login that a user must make at an upstream.
type Login struct {
	Server    string // name of the upstream
	Principal string // of the request that the upstream refused
	Issuer    string // authorization server of the gateway that knows the principal
	// Run logs in. login sends the user's browser to the authorization server of the upstream.
	Run func(ctx context.Context, login auth.Login) error
}

// Pages serves the pages. It is safe for concurrent use.
type Pages struct {
	opts    Options
	clients registrations
	ctx     context.Context // ends at Close
	close   context.CancelFunc
	work    sync.WaitGroup

	remote replicas

	mu    sync.Mutex
	flows map[string]*flow // by id
	users map[user]*flow
	steps map[string]*step // by state
	ended map[string]error // of flows, for other replicas, by id
}

// user identifies the account of a principal at an upstream.
type user struct{ server, principal string }

// flow is a login that was begun by an elicitation.
type flow struct {
	id string
	Login
	done chan struct{} // closed when the login is finished, has failed or has expired
	err  error         // valid after done is closed

	announced chan struct{} // closed when the address is known
	address   string        // valid after announced is closed; of another replica's flow, if that counts
	refused   error         // why the address is missing; valid after announced is closed

	timer *time.Timer

	attempt *loginAttempt // the newest one; guarded by Pages.mu
}

// New returns the pages of a gateway. Call [Pages.Close] at its end.
func New(o Options) *Pages {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p := &Pages{opts: o, clients: registrations{auth.NewStore()}, flows: map[string]*flow{}, users: map[user]*flow{}, steps: map[string]*step{}, ended: map[string]error{}}
	p.ctx, p.close = context.WithCancel(context.Background())
	p.remote.join(p)
	return p
}

// RedirectURI returns the redirect URI of all logins.
func (p *Pages) RedirectURI() string { return p.opts.URL + CallbackPath }

// Begin returns the address of the page for a login. A login of the same user at the same server
// that was begun before, also at another replica, keeps its address.
func (p *Pages) Begin(ctx context.Context, l Login) (address string, err error) {
	f, isNew, err := p.startFlow(l)
	if err != nil {
		return "", err
	}
	if isNew {
		p.announceFlow(ctx, f)
	}
	select {
	case <-f.announced:
		return f.address, f.refused
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// announceFlow makes the address of a new flow known. Another replica may have a flow of the same
// user: that one counts.
func (p *Pages) announceFlow(ctx context.Context, f *flow) {
	defer close(f.announced)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout) // others wait for it, too
	defer cancel()
	id, err := p.remote.announceFlow(ctx, f)
	f.address, f.refused = p.opts.URL+Prefix+id, err
	if err != nil || id != f.id {
		p.finish(f, errors.New("the login has begun at another replica"))
	}
}

// startFlow returns the flow of a login, which may have begun before.
func (p *Pages) startFlow(l Login) (f *flow, isNew bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f = p.users[user{l.Server, l.Principal}]
	switch {
	case p.ctx.Err() != nil:
		return nil, false, errors.New("the gateway is shutting down")
	case f == nil && len(p.flows) >= maxFlows:
		return nil, false, fmt.Errorf("%d logins are waiting for their users, which is the maximum", maxFlows)
	case f == nil:
		isNew = true
		f = &flow{id: p.remote.newFlowID(), Login: l, done: make(chan struct{}), announced: make(chan struct{})}
		f.timer = time.AfterFunc(flowLifetime, func() { p.finish(f, errors.New("the user has not logged in within 10 minutes")) })
		p.flows[f.id], p.users[user{l.Server, l.Principal}] = f, f
	}
	return f, isNew, nil
}

// Await waits until a login that was begun is finished, and returns its error. It returns nil at
// once if none was begun.
func (p *Pages) Await(ctx context.Context, server, principal string) error {
	p.mu.Lock()
	f := p.users[user{server, principal}]
	p.mu.Unlock()
	if f == nil {
		return p.remote.awaitRemotely(ctx, server, principal)
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish ends a flow. Only the first call counts.
func (p *Pages) finish(f *flow, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flows[f.id] != f {
		return
	}
	f.timer.Stop()
	delete(p.flows, f.id)
	delete(p.users, user{f.Server, f.Principal})
	if f.attempt != nil {
		f.attempt.cancel()
	}
	f.err = err
	close(f.done)
	if p.remote.network != nil && p.ctx.Err() == nil {
		p.ended[f.id] = err
		time.AfterFunc(flowLifetime, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.ended, f.id)
		})
	}
}

// Close ends all logins.
func (p *Pages) Close() {
	p.remote.leave()
	p.close()
	p.mu.Lock()
	all := make([]*flow, 0, len(p.flows))
	for _, f := range p.flows {
		all = append(all, f)
	}
	p.mu.Unlock()
	for _, f := range all {
		p.finish(f, errors.New("the gateway is shutting down"))
	}
	p.work.Wait()
}

// identify lets the browser's user log in at the authorization server of the gateway, and returns
// the principal. Its token is for the gateway, and is not kept.
func (p *Pages) identify(ctx context.Context, issuer string, login auth.Login) (principal string, err error) {
	self, err := url.Parse(p.opts.Resource)
	if err != nil {
		return "", err
	}
	client := p.opts.Client
	client.RedirectURI = p.RedirectURI()
	t, err := auth.NewTransport(p.opts.Resource, &auth.Options{
		Login: login, Client: client, Store: p.clients, Server: auth.Server{Issuer: issuer, AllowPrivate: true}, Base: &selfTransport{
			host: self.Host, handler: p.opts.Protect(http.HandlerFunc(writePrincipal)),
		},
	})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.opts.Resource, nil)
	if err != nil {
		return "", err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if principal = resp.Header.Get(principalField); resp.StatusCode != http.StatusOK || principal == "" {
		return "", fmt.Errorf("the gateway refuses the token of the visitor with status %d", resp.StatusCode)
	}
	return principal, nil
}

// registrations is a store that keeps the registration of the gateway at its authorization servers,
// and no tokens: each user must log in.
type registrations struct{ auth.Store }

// Update implements [auth.Store].
func (s registrations) Update(ctx context.Context, key string, change func(*auth.Record) (*auth.Record, error)) error {
	return s.Store.Update(ctx, key, func(r *auth.Record) (*auth.Record, error) {
		next, err := change(r)
		if next == nil || err != nil {
			return next, err
		}
		kept := *next
		kept.AccessToken, kept.RefreshToken, kept.TokenType, kept.LoginID, kept.DPoPKey = "", "", "", "", nil
		return &kept, nil
	})
}
