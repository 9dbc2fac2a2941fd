package auth

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

const testRedirect = "http://127.0.0.1:13316/callback"

// testLogin is a user who approves each login at once.
type testLogin struct {
	as    *authtest.Server
	count atomic.Int32
	// change changes the parameters of the redirect; it may be nil.
	change   func(url.Values)
	redirect string            // replaces the redirect URI; it may be empty
	requests chan LoginRequest // if it is not nil, takes each request
	urls     []string
}

func (l *testLogin) Login(ctx context.Context, r LoginRequest) (url.Values, error) {
	l.count.Add(1)
	if l.requests != nil {
		l.requests <- r
	}
	redirect := testRedirect
	if len(r.RedirectURIs) > 0 {
		redirect = r.RedirectURIs[0]
	}
	redirect = cmp.Or(l.redirect, redirect)
	page, err := r.Start(ctx, redirect)
	if err != nil {
		return nil, err
	}
	l.urls = append(l.urls, page)
	to, err := l.as.Approve(ctx, page)
	if err != nil {
		return nil, err
	}
	params := to.Query()
	if l.change != nil {
		l.change(params)
	}
	return params, nil
}

var okHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })

// setup is an authorization server, a resource that it protects, and a Transport for it.
type setup struct {
	t     *testing.T
	as    *authtest.Server
	rs    *authtest.Resource
	login *testLogin
	*Transport
}

// newSetup starts a setup. Options.Login is a user unless noLogin is set.
func newSetup(t *testing.T, server *authtest.Options, o Options, scopes ...string) *setup {
	t.Helper()
	as := authtest.Start(t, server)
	s := &setup{t: t, as: as, rs: as.Protect(t, okHandler, scopes...), login: &testLogin{as: as}}
	if o.Login == nil && !o.ClientCredentials && o.Assertion == nil {
		o.Login = s.login
	}
	s.Transport = s.newTransport(o)
	return s
}

func (s *setup) newTransport(o Options) *Transport {
	s.t.Helper()
	tr, err := NewTransport(s.rs.URL, &o)
	if err != nil {
		s.t.Fatal(err)
	}
	return tr
}

// post sends a request over a Transport and returns the status.
func post(ctx context.Context, tr http.RoundTripper, to, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// mustPost sends a request that must be answered with status 200.
func (s *setup) mustPost(tr *Transport) {
	s.t.Helper()
	s.mustSend(tr, `{"method":"ping"}`)
}

// mustSend sends a body that must be answered with status 200.
func (s *setup) mustSend(tr *Transport, body string) {
	s.t.Helper()
	if status, err := post(s.t.Context(), tr, s.rs.URL, body); err != nil || status != http.StatusOK {
		s.t.Fatalf("status %d, %v", status, err)
	}
}

// wantCounts checks how many requests the endpoints of the authorization server have got.
func (s *setup) wantCounts(want map[string]int) {
	s.t.Helper()
	for endpoint, n := range want {
		if got := s.as.Count(endpoint); got != n {
			s.t.Errorf("%d requests at %s, want %d", got, endpoint, n)
		}
	}
}

// record returns the stored record, which must exist.
func (s *setup) record(tr *Transport) *Record {
	s.t.Helper()
	r, err := tr.opts.Store.Load(s.t.Context(), tr.key)
	if err != nil || r == nil {
		s.t.Fatalf("record %v, %v", r, err)
	}
	return r
}

// setRecord changes the stored record.
func (s *setup) setRecord(tr *Transport, change func(*Record)) {
	s.t.Helper()
	err := tr.opts.Store.Update(s.t.Context(), tr.key, func(r *Record) (*Record, error) {
		change(r)
		return r, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
