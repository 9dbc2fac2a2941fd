package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A request that comes after the last caller of a login has gone begins its own.
func TestLeftLoginIsNotInherited(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	calls := 0
	tr := s.newTransport(Options{Login: LoginFunc(func(ctx context.Context, r LoginRequest) (url.Values, error) {
		if calls++; calls > 1 {
			return s.login.Login(ctx, r)
		}
		close(begun)
		<-ctx.Done()
		<-release
		return nil, context.Cause(ctx)
	})})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := post(ctx, tr, s.rs.URL, "{}"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if status, err := post(ctx, tr, s.rs.URL, "{}"); err != nil || status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
}

// A refresh ahead of time that is refused costs the refresh token only: the access token is valid.
func TestRefusedEarlyRefresh(t *testing.T) {
	t.Parallel()
	s := newSetup(t, &authtest.Options{Quirks: []string{"refresh-invalid"}}, Options{Store: NewStore()})
	s.mustPost(s.Transport)
	s.setRecord(s.Transport, func(r *Record) {
		r.ObtainedAt, r.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second)
	})
	tr := s.newTransport(Options{Store: s.opts.Store})
	s.mustPost(tr)
	s.mustPost(tr)
	s.mustPost(s.newTransport(Options{Store: s.opts.Store}))
	s.wantCounts(map[string]int{"refresh_token": 1, "authorize": 1})
}

// A token is neither sent to a server over http nor asked for it, unless the options allow it.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	const server = "http://mcp.example/mcp"
	store := NewStore()
	for _, hasToken := range []bool{false, true} {
		if hasToken {
			_ = store.Update(t.Context(), server, func(*Record) (*Record, error) { return &Record{Server: server, AccessToken: "t"}, nil })
		}
		for _, allowed := range []bool{false, true} {
			var sent []string
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.URL.Path+" "+r.Header.Get("Authorization"))
				if r.URL.Path != "/mcp" {
					return nil, errors.New("asked")
				}
				status := http.StatusUnauthorized
				if r.Header.Get("Authorization") != "" {
					status = http.StatusOK
				}
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
			})
			tr, err := NewTransport(server, &Options{Base: base, Store: store, AllowHTTP: allowed})
			if err != nil {
				t.Fatal(err)
			}
			_, err = post(t.Context(), tr, server, "{}")
			wasUsed := slices.ContainsFunc(sent, func(s string) bool { return s != "/mcp " })
			if wasUsed != allowed || !allowed && (err == nil || !strings.Contains(err.Error(), "https")) {
				t.Errorf("token %v, allowed %v: sent %q, %v", hasToken, allowed, sent, err)
			}
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request with a valid token does not wait for the login of another, and the callers of both
// dials learn of the login that they wait for.
func TestWaitingForALogin(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{})
	s.mustPost(s.Transport)
	shown, release := make(chan struct{}, 2), make(chan struct{})
	login := s.opts.Login
	s.opts.Login = LoginFunc(func(ctx context.Context, r LoginRequest) (url.Values, error) {
		values, err := login.Login(ctx, r)
		shown <- struct{}{}
		<-release
		return values, err
	})
	s.setRecord(s.Transport, func(r *Record) {
		r.ObtainedAt, r.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second)
	})
	if _, err := s.loadCredential(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages := make(chan string, 10)
	done := make(chan error, 2)
	for range 2 {
		ctx := startphase.WithObserver(t.Context(), func(p startphase.Phase) { pages <- p.LoginURL })
		go func() { done <- s.Login(ctx) }()
	}
	<-shown
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if status, err := post(ctx, s.Transport, s.rs.URL, "{}"); err != nil || status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	for range 2 {
		select {
		case page := <-pages:
			if page == "" {
				t.Error("the login is over")
			}
		case <-ctx.Done():
			t.Error("a caller was not told")
		}
	}
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Only the context of the request makes its error the end of that context. A deadline within the
// login is a refusal.
func TestTimeoutOfALoginIsARefusal(t *testing.T) {
	t.Parallel()
	s := newSetup(t, nil, Options{Login: LoginFunc(func(context.Context, LoginRequest) (url.Values, error) {
		return nil, fmt.Errorf("the user did not answer: %w", context.DeadlineExceeded)
	})})
	_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
	if _, ok := errors.AsType[*httpwire.RefusalError](err); !ok {
		t.Errorf("%T %v", err, err)
	}
}

// A user who has approved a login does not do so again because the request that led to it has gone.
func TestLeftLoginIsSaved(t *testing.T) {
	t.Parallel()
	asked, left := make(chan struct{}), make(chan struct{})
	s := newSetup(t, &authtest.Options{OnRequest: func(endpoint string, _ http.ResponseWriter, _ *http.Request) bool {
		if endpoint == "authorization_code" {
			close(asked)
			<-left
		}
		return false
	}}, Options{Store: NewStore()})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := post(ctx, s.Transport, s.rs.URL, "{}"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	f := s.flight
	s.mu.Unlock()
	close(left)
	if f != nil {
		t.Error("the login is still joined")
	}
	for deadline := time.Now().Add(30 * time.Second); s.current.Load() == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the login was not saved")
		}
		_ = timeout.Sleep(t.Context(), time.Millisecond)
	}
	s.mustPost(s.newTransport(Options{Store: s.opts.Store}))
	s.wantCounts(map[string]int{"authorize": 1})
}
