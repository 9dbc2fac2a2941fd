package userlogin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/auth"
)

// loginAttempt follows the browser of one user through two logins: the first proves who the user
// is, the second is at the upstream.
type loginAttempt struct {
	flow   *flow
	secret string // of the cookie
	cancel context.CancelFunc
	next   chan outcome // has room for one
}

// outcome is the next answer to the browser: a redirect, or the end.
type outcome struct {
	redirect string
	err      error
}

// step is a redirect from an authorization server that an attempt waits for.
type step struct {
	attempt *loginAttempt
	answer  chan url.Values // has room for one
}

// errOtherUser ends an attempt if its user is not the user who must log in.
var errOtherUser = errors.New("this login belongs to another user")

// attemptTimeout bounds an attempt.
const attemptTimeout = 10 * time.Minute

// ServeHTTP serves the pages, also the pages of logins that another replica runs.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !p.remote.serveRemotely(w, r) {
		p.serveHere(w, r)
	}
}

// serveHere serves the pages of the logins of this replica.
func (p *Pages) serveHere(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		writePage(w, http.StatusMethodNotAllowed, "Open this page in a browser.")
	case r.URL.Path == CallbackPath:
		p.serveCallback(w, r)
	default:
		p.servePage(w, r, strings.TrimPrefix(r.URL.Path, Prefix))
	}
}

// servePage begins an attempt and sends the browser to the gateway's authorization server.
func (p *Pages) servePage(w http.ResponseWriter, r *http.Request, id string) {
	a := p.startAttempt(id)
	if a == nil {
		writePage(w, http.StatusNotFound, "This address is not valid, or not any more. Call the tool again to get another one.")
		return
	}
	http.SetCookie(w, p.cookie(a, a.secret, int(attemptTimeout.Seconds())))
	p.writeOutcome(w, r, a)
}

// startAttempt begins an attempt in place of an earlier one. It returns nil if the flow
// does not exist.
func (p *Pages) startAttempt(id string) *loginAttempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.flows[id]
	if f == nil || p.ctx.Err() != nil {
		return nil
	}
	if f.attempt != nil {
		f.attempt.cancel()
	}
	ctx, cancel := context.WithTimeout(p.ctx, attemptTimeout)
	a := &loginAttempt{flow: f, secret: rand.Text(), cancel: cancel, next: make(chan outcome, 1)}
	f.attempt = a
	p.work.Go(func() {
		defer cancel()
		p.runAttempt(ctx, a)
	})
	return a
}

// runAttempt makes sure that the browser's user is the user of the flow, and logs in
// at the upstream.
func (p *Pages) runAttempt(ctx context.Context, a *loginAttempt) {
	login := auth.LoginFunc(func(ctx context.Context, r auth.LoginRequest) (url.Values, error) { return p.sendBrowser(ctx, a, r) })
	who, err := p.identify(ctx, a.flow.Issuer, login)
	if err == nil && who != a.flow.Principal {
		err = errOtherUser
	}
	if err != nil {
		p.opts.Logger.Warn("a visitor of a login page has not proved to be its user", "server", a.flow.Server, "user", a.flow.Principal, "visitor", who, "error", err)
		a.show(outcome{err: err}) // the flow waits for its user
		return
	}
	if err = a.flow.Run(ctx, login); err != nil {
		p.opts.Logger.Warn("a user has not logged in", "server", a.flow.Server, "user", a.flow.Principal, "error", err)
	}
	if err == nil || ctx.Err() == nil { // else another attempt or the end of the flow has taken its place
		p.finish(a.flow, err)
	}
	a.show(outcome{err: err})
}

// show replaces the next answer to the browser. Only the goroutine of the attempt calls it, so it
// does not block.
func (a *loginAttempt) show(o outcome) {
	select {
	case <-a.next:
	default:
	}
	a.next <- o
}

// sendBrowser is the login of an authorization server: it redirects the browser there and waits for
// the redirect back.
func (p *Pages) sendBrowser(ctx context.Context, a *loginAttempt, r auth.LoginRequest) (url.Values, error) {
	page, err := r.Start(ctx, p.RedirectURI())
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	state, s := u.Query().Get("state"), &step{attempt: a, answer: make(chan url.Values, 1)}
	p.mu.Lock()
	p.steps[state] = s
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.steps, state)
	}()
	a.show(outcome{redirect: page})
	select {
	case params := <-s.answer:
		return params, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serveCallback passes the parameters of a redirect to the login that waits for them. It
// refuses another browser than the browser of the login. A state counts once. Package auth
// checks the parameters.
func (p *Pages) serveCallback(w http.ResponseWriter, r *http.Request) {
	state := r.URL.Query().Get("state")
	p.mu.Lock()
	s := p.steps[state]
	p.mu.Unlock()
	if s == nil {
		writePage(w, http.StatusBadRequest, "No login waits for this answer. Call the tool again.")
		return
	}
	c, err := r.Cookie(p.cookieName(s.attempt))
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.attempt.secret)) != 1 {
		writePage(w, http.StatusForbidden, "This login was begun in another browser.")
		return
	}
	p.mu.Lock()
	isFirst := p.steps[state] == s
	delete(p.steps, state)
	p.mu.Unlock()
	if !isFirst {
		writePage(w, http.StatusBadRequest, "This answer was used already.")
		return
	}
	s.answer <- r.URL.Query()
	p.writeOutcome(w, r, s.attempt)
}

// writeOutcome waits for the next answer to the browser and writes it.
func (p *Pages) writeOutcome(w http.ResponseWriter, r *http.Request, a *loginAttempt) {
	var o outcome
	select {
	case o = <-a.next:
	case <-r.Context().Done():
		return
	}
	switch {
	case o.redirect != "":
		http.Redirect(w, r, o.redirect, http.StatusFound) // package auth accepts http(s) only
		return
	case o.err == nil:
		http.SetCookie(w, p.cookie(a, "", -1))
		writePage(w, http.StatusOK, fmt.Sprintf("You are logged in at %s. You can close this page.", a.flow.Server))
	case errors.Is(o.err, errOtherUser):
		writePage(w, http.StatusForbidden, fmt.Sprintf("This address logs in another user at %s, not you. If somebody sent it to you, tell your administrator.", a.flow.Server))
	default:
		writePage(w, http.StatusBadGateway, fmt.Sprintf("The login at %s has failed. Call the tool again to get another address.", a.flow.Server))
	}
}

// cookiePrefix begins the names of cookies; the id of a flow follows.
const cookiePrefix = "dowel-login-"

// cookieName returns the name of the cookie that identifies the browser. Only https allows a cookie
// that other servers of the host cannot set.
func (p *Pages) cookieName(a *loginAttempt) string {
	name := cookiePrefix + a.flow.id
	if strings.HasPrefix(p.opts.URL, "https:") {
		return "__Host-" + name
	}
	return name
}

func (p *Pages) cookie(a *loginAttempt, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: p.cookieName(a), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(p.opts.URL, "https:"),
	}
}

// writePage writes a page with one sentence.
func writePage(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>dowel</title><p>%s</p>\n", html.EscapeString(text))
}
