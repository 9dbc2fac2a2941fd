package auth

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A failed login leaves the earlier login as it was, with the client to which its refresh token
// belongs.
func TestUnfinishedLoginKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		redirect string // of the second login
		leave    bool   // its caller goes
	}{
		{"new registration, given up", "http://127.0.0.1:4711/other", false},
		{"new registration, left", "http://127.0.0.1:4711/other", true},
		{"same registration, given up", testRedirect, false},
		{"same registration, left", testRedirect, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, nil, Options{Store: NewStore()})
			s.mustPost(s.Transport)
			before := s.record(s.Transport)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan struct{})
			second := s.newTransport(Options{Store: s.opts.Store, Login: LoginFunc(func(inner context.Context, r LoginRequest) (url.Values, error) {
				defer close(done)
				if _, err := r.Start(inner, tt.redirect); err != nil {
					t.Error(err)
				}
				if tt.leave {
					cancel()
					<-inner.Done()
				}
				return nil, errors.New("given up")
			})})
			if err := second.Login(ctx); err == nil {
				t.Fatal("no error")
			}
			<-done
			s.as.Advance(2 * time.Hour)
			s.mustPost(s.newTransport(Options{Store: s.opts.Store}))
			s.wantCounts(map[string]int{"refresh_token": 1, "authorization_code": 1})
			if after := s.record(s.Transport); after.LoginID != before.LoginID || after.Registration.ClientID != before.Registration.ClientID {
				t.Errorf("the login is now %+v", after)
			}
		})
	}
}

// The registration of a login that was given up is used for the next, and then belongs to its
// tokens.
func TestPendingRegistrationIsUsed(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{Store: NewStore()})
	s.mustPost(s.Transport)
	first := s.record(s.Transport).Registration.ClientID
	for _, gives := range []bool{true, false} {
		tr := s.newTransport(Options{Store: s.opts.Store, Login: LoginFunc(func(ctx context.Context, r LoginRequest) (url.Values, error) {
			page, err := r.Start(ctx, "http://127.0.0.1:4711/other")
			if err != nil || gives {
				return nil, errors.Join(err, errors.New("given up"))
			}
			to, err := s.as.Approve(ctx, page)
			if err != nil {
				return nil, err
			}
			return to.Query(), nil
		})})
		if err := tr.Login(t.Context()); (err != nil) != gives {
			t.Fatal(err)
		}
	}
	s.wantCounts(map[string]int{"register": 2})
	if r := s.record(s.Transport); r.Pending != nil || r.Registration.ClientID == first {
		t.Errorf("%+v", r)
	}
}

// A login at another authorization server that does not succeed does not end the one at the first.
func TestUnfinishedLoginAtAnotherServer(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{Store: NewStore()})
	s.mustPost(s.Transport)
	other := authtest.Start(t, nil)
	s.rs.SetServer(other)
	s.login.as = other
	s.login.change = func(q url.Values) { q.Del("code") }
	if err := s.Login(t.Context()); err == nil {
		t.Fatal("no error")
	}
	s.rs.SetServer(s.as)
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.newTransport(Options{Store: s.opts.Store}))
	s.wantCounts(map[string]int{"refresh_token": 1, "authorization_code": 1})
}
