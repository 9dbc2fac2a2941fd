package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// Transport is an [http.RoundTripper] that authorizes the requests to one MCP server. Requests to
// other origins, and requests with an Authorization field of their own, pass unchanged. It is safe
// for concurrent use.
//
// The body of a request that is refused is sent again with its GetBody. A request with a body and
// without GetBody is sent once.
type Transport struct {
	server  string // the URL of the MCP server
	url     *url.URL
	opts    Options
	key     string // of the record
	base    http.RoundTripper
	fetcher *fetcher
	nonces  sync.Map                                         // the newest DPoP nonce of each origin
	wait    func(ctx context.Context, d time.Duration) error // between polls of a device flow

	current  atomic.Pointer[credential] // in use; nil without a token
	isLoaded atomic.Bool                // the record has been read once

	mu      sync.Mutex
	flight  *flight
	stepUps map[string]int // by operation, since they last helped or a login was asked for
	failure loginFailure   // the last one
	// renewAgain is when a token may be renewed ahead of time again, after a failure.
	renewAgain time.Time
}

// sharedBase sends the requests of Transports without a base.
var sharedBase = sync.OnceValue(func() http.RoundTripper { return httpwire.NewTransport() })

// NewTransport returns a Transport for the MCP server at a URL of http, https, ws or wss. nil
// options mean the zero [Options].
func NewTransport(server string, opts *Options) (*Transport, error) {
	if len(server) > 2 && strings.EqualFold(server[:2], "ws") { // the handshake of a WebSocket is a request of HTTP
		server = "http" + server[2:]
	}
	u, err := httpwire.Endpoint{URL: server}.Parse()
	if err != nil {
		return nil, err
	}
	t := &Transport{server: serverIdentifier(u), stepUps: map[string]int{}, wait: timeout.Sleep}
	if t.url, err = url.Parse(t.server); err != nil {
		return nil, err
	}
	if opts != nil {
		t.opts = *opts
	}
	if err := t.opts.checkOptions(); err != nil {
		return nil, err
	}
	if t.opts.Store == nil {
		t.opts.Store = NewStore()
	}
	if t.base = t.opts.Base; t.base == nil {
		t.base = sharedBase()
	}
	t.key = RecordKey(t.server, t.opts.Account)
	t.fetcher = newFetcher(t.url, t.base, t.opts.Server.AllowPrivate)
	return t, nil
}

// serverIdentifier returns the canonical URI of a server: scheme and host in lower case, without
// user, fragment and a "/" that is the whole path (authorization: canonical server URI).
func serverIdentifier(u *url.URL) string {
	c := httpwire.Canonical(u)
	if c.Path == "/" && c.RawQuery == "" {
		c.Path = ""
	}
	return c.String()
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !httpwire.SameOrigin(r.URL, t.url) || r.Header.Get("Authorization") != "" {
		return t.base.RoundTrip(r)
	}
	c, err := t.readyCredential(r.Context())
	if err != nil {
		closeBody(r)
		return nil, refusal(r.Context(), err)
	}
	resp, err := t.sendWithCredential(r, c, r.Body)
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	return t.handleRefusal(r, c, resp)
}

// handleRefusal repeats a request with other credentials for as long as there are better ones.
func (t *Transport) handleRefusal(r *http.Request, c *credential, resp *http.Response) (*http.Response, error) {
	a := &attempts{t: t, r: r}
	for {
		if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
			return resp, nil
		}
		next, err := a.next(r.Context(), c, resp)
		if err == nil && next == nil {
			return resp, nil
		}
		discard(resp)
		if err != nil {
			return nil, refusal(r.Context(), err)
		}
		c = next
		var body io.ReadCloser
		if r.GetBody != nil {
			if body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		if resp, err = t.sendWithCredential(r, c, body); err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			a.noteSuccess()
			return resp, nil
		}
	}
}

// sendWithCredential sends a copy of the request with a credential, or without one if c is nil.
func (t *Transport) sendWithCredential(r *http.Request, c *credential, body io.ReadCloser) (*http.Response, error) {
	out := r.WithContext(r.Context())
	out.Body = body
	if c == nil {
		return t.base.RoundTrip(out)
	}
	out.Header = maps.Clone(r.Header)
	if out.Header == nil {
		out.Header = http.Header{}
	}
	out.Header["Authorization"] = c.field
	if c.dpop == nil {
		return t.base.RoundTrip(out)
	}
	if err := t.addProof(out.Header, c.dpop, oauth.ProofClaims{Method: r.Method, URL: r.URL.String(), Token: c.token}); err != nil {
		closeBody(out)
		return nil, err
	}
	resp, err := t.base.RoundTrip(out)
	if err == nil {
		t.noteNonce(r.URL, resp.Header)
	}
	return resp, err
}

// addProof adds a proof with the newest nonce of its target.
func (t *Transport) addProof(h http.Header, key *oauth.DPoPKey, claims oauth.ProofClaims) error {
	target, err := url.Parse(claims.URL)
	if err != nil {
		return err
	}
	if nonce, ok := t.nonces.Load(httpwire.Origin(target)); ok {
		claims.Nonce = nonce.(string)
	}
	target.User, target.RawQuery, target.Fragment = nil, "", ""
	claims.URL = target.String()
	proof, err := key.MakeProof(claims, time.Now())
	if err != nil {
		return fmt.Errorf("cannot make a DPoP proof: %w", err)
	}
	h[oauth.HeaderDPoP] = []string{proof}
	return nil
}

// noteNonce remembers the nonce of an answer. It reports whether it is a new one.
func (t *Transport) noteNonce(target *url.URL, h http.Header) bool {
	const maxNonce = 1 << 10
	nonce := h.Get(oauth.HeaderDPoPNonce)
	if nonce == "" || len(nonce) > maxNonce {
		return false
	}
	before, _ := t.nonces.Swap(httpwire.Origin(target), nonce)
	return before != nonce
}

// readyCredential returns the current credential, or nil without one. It renews a token that is
// about to expire.
func (t *Transport) readyCredential(ctx context.Context) (*credential, error) {
	c := t.current.Load()
	if c == nil && !t.isLoaded.Load() {
		var err error
		if c, err = t.loadCredential(ctx); err != nil {
			return nil, err
		}
	}
	if c != nil {
		if err := t.checkEncrypted(); err != nil {
			return nil, err
		}
	}
	if c == nil || !c.canRenew() || time.Now().Before(c.renewAt) || !t.mayRenew(c) {
		return c, nil
	}
	renewed, err := t.acquire(ctx, &need{kind: aheadOfTime, failed: c})
	switch {
	case err == nil:
		return renewed, nil
	case ctx.Err() != nil:
		return nil, err
	}
	t.delayRenewal()
	return c, nil // the server may accept it, and its refusal says more
}

// checkEncrypted returns an error unless tokens may be sent to the server (RFC 6750, section 5.3).
func (t *Transport) checkEncrypted() error {
	if t.url.Scheme == "https" || t.opts.AllowHTTP || isLoopbackHost(t.url.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s is not encrypted, so it gets no token: use its URL of https, or set Options.AllowHTTP", t.server)
}

// retryRenewal is the wait after a renewal ahead of time has failed.
const retryRenewal = 30 * time.Second

// mayRenew reports whether a token is to be renewed ahead of time now. A valid one does not wait
// for the login of another request.
func (t *Transport) mayRenew(c *credential) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	isLogin := t.flight != nil && t.flight.kind > aheadOfTime
	return !time.Now().Before(t.renewAgain) && (!isLogin || c.isExpired())
}

func (t *Transport) delayRenewal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewAgain = time.Now().Add(retryRenewal)
}

// loadCredential reads the record and makes its token the current one.
func (t *Transport) loadCredential(ctx context.Context) (*credential, error) {
	r, err := t.opts.Store.Load(ctx, t.key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the login of %s: %w", t.server, err)
	}
	return t.adoptRecord(r)
}

// adoptRecord makes the token of a record the current one, unless it belongs to another login than
// the options allow.
func (t *Transport) adoptRecord(r *Record) (*credential, error) {
	c, err := newCredential(r)
	if err != nil {
		return nil, err
	}
	t.current.Store(c)
	t.isLoaded.Store(true)
	return c, nil
}

// refusal marks an error of the authorization, so that it is not taken for a failure of the
// connection. It does not mark the end of the request's own context.
func refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	_, needsLogin := errors.AsType[*NeedsLogin](err)
	_, noServer := errors.AsType[*DiscoveryError](err)
	return &httpwire.RefusalError{Err: err, NeedsLogin: needsLogin, NoServer: noServer, WrongClient: refusedAs(err, "invalid_client")}
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// discard reads the rest of a short answer, so that its connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, httpwire.MaxErrorBody)
	resp.Body.Close()
}
