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

// visit is one visitor of a page, who goes through two logins: one that tells who the visitor is,
// and the one at the upstream.
type visit struct {
	flow   *flow
	secret string // of the cookie
	cancel context.CancelFunc
	next   chan outcome // has room for one
}

// outcome is the next page of a visit: a redirect, or the end.
type outcome struct {
	redirect string
	err      error
}

// step is a redirect from an authorization server that a visit waits for.
type step struct {
	visit  *visit
	answer chan url.Values // has room for one
}

// errOtherUser ends the visit of another user than the one who must log in.
var errOtherUser = errors.New("this login belongs to another user")

// visitTimeout bounds the time from the opening of a page to its end.
const visitTimeout = 10 * time.Minute

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

// servePage begins a visit and sends the browser to the gateway's authorization server.
func (p *Pages) servePage(w http.ResponseWriter, r *http.Request, id string) {
	v := p.startVisit(id)
	if v == nil {
		writePage(w, http.StatusNotFound, "This address is not valid, or not any more. Call the tool again to get another one.")
		return
	}
	http.SetCookie(w, p.cookie(v, v.secret, int(visitTimeout.Seconds())))
	p.writeOutcome(w, r, v)
}

// startVisit begins a visit in place of an earlier one. It returns nil if the flow does not exist.
func (p *Pages) startVisit(id string) *visit {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.flows[id]
	if f == nil || p.ctx.Err() != nil {
		return nil
	}
	if f.visit != nil {
		f.visit.cancel()
	}
	ctx, cancel := context.WithTimeout(p.ctx, visitTimeout)
	v := &visit{flow: f, secret: rand.Text(), cancel: cancel, next: make(chan outcome, 1)}
	f.visit = v
	p.work.Go(func() {
		defer cancel()
		p.runVisit(ctx, v)
	})
	return v
}

// runVisit makes sure that the visitor is the user of the flow, and logs in at the upstream.
func (p *Pages) runVisit(ctx context.Context, v *visit) {
	login := auth.LoginFunc(func(ctx context.Context, r auth.LoginRequest) (url.Values, error) { return p.sendBrowser(ctx, v, r) })
	who, err := p.identify(ctx, v.flow.Issuer, login)
	if err == nil && who != v.flow.Principal {
		err = errOtherUser
	}
	if err != nil {
		p.opts.Logger.Warn("a visitor of a login page has not proved to be its user", "server", v.flow.Server, "user", v.flow.Principal, "visitor", who, "error", err)
		v.show(outcome{err: err}) // the flow waits for its user
		return
	}
	if err = v.flow.Run(ctx, login); err != nil {
		p.opts.Logger.Warn("a user has not logged in", "server", v.flow.Server, "user", v.flow.Principal, "error", err)
	}
	if err == nil || ctx.Err() == nil { // else another visit or the end of the flow has taken its place
		p.finish(v.flow, err)
	}
	v.show(outcome{err: err})
}

// show replaces the next page of the visit. Only the goroutine of the visit calls it, so it does
// not block.
func (v *visit) show(o outcome) {
	select {
	case <-v.next:
	default:
	}
	v.next <- o
}

// sendBrowser is the login of an authorization server: it redirects the visitor's browser there,
// and waits for the redirect back.
func (p *Pages) sendBrowser(ctx context.Context, v *visit, r auth.LoginRequest) (url.Values, error) {
	page, err := r.Start(ctx, p.RedirectURI())
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	state, s := u.Query().Get("state"), &step{visit: v, answer: make(chan url.Values, 1)}
	p.mu.Lock()
	p.steps[state] = s
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.steps, state)
	}()
	v.show(outcome{redirect: page})
	select {
	case params := <-s.answer:
		return params, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serveCallback passes the parameters of a redirect to the login that waits for them, if the
// browser is the one of the visit. A state counts once. The parameters are checked by package auth.
func (p *Pages) serveCallback(w http.ResponseWriter, r *http.Request) {
	state := r.URL.Query().Get("state")
	p.mu.Lock()
	s := p.steps[state]
	p.mu.Unlock()
	if s == nil {
		writePage(w, http.StatusBadRequest, "No login waits for this answer. Call the tool again.")
		return
	}
	c, err := r.Cookie(p.cookieName(s.visit))
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.visit.secret)) != 1 {
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
	p.writeOutcome(w, r, s.visit)
}

// writeOutcome waits for the next page of a visit.
func (p *Pages) writeOutcome(w http.ResponseWriter, r *http.Request, v *visit) {
	var o outcome
	select {
	case o = <-v.next:
	case <-r.Context().Done():
		return
	}
	switch {
	case o.redirect != "":
		http.Redirect(w, r, o.redirect, http.StatusFound) // package auth accepts http(s) only
		return
	case o.err == nil:
		http.SetCookie(w, p.cookie(v, "", -1))
		writePage(w, http.StatusOK, fmt.Sprintf("You are logged in at %s. You can close this page.", v.flow.Server))
	case errors.Is(o.err, errOtherUser):
		writePage(w, http.StatusForbidden, fmt.Sprintf("This address logs in another user at %s, not you. If somebody sent it to you, tell your administrator.", v.flow.Server))
	default:
		writePage(w, http.StatusBadGateway, fmt.Sprintf("The login at %s has failed. Call the tool again to get another address.", v.flow.Server))
	}
}

// cookiePrefix begins the names of cookies; the id of a flow follows.
const cookiePrefix = "dowel-login-"

// cookieName returns the name of a visit's cookie. Only https allows a cookie that other servers of
// the host cannot set.
func (p *Pages) cookieName(v *visit) string {
	name := cookiePrefix + v.flow.id
	if strings.HasPrefix(p.opts.URL, "https:") {
		return "__Host-" + name
	}
	return name
}

func (p *Pages) cookie(v *visit, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: p.cookieName(v), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(p.opts.URL, "https:"),
	}
}

// writePage writes a page with one sentence.
func writePage(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>dowel</title><p>%s</p>\n", html.EscapeString(text))
}
