package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// approve returns a user who approves each login at once.
func approve(as *authtest.Server) auth.LoginFunc {
	return func(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
		page, err := r.Start(ctx, "http://127.0.0.1:13316/callback")
		if err != nil {
			return nil, err
		}
		to, err := as.Approve(ctx, page)
		if err != nil {
			return nil, err
		}
		return to.Query(), nil
	}
}

func newServer() *server.Server {
	s := server.New("notes", "1", nil)
	server.Tool(s, "greet", "Greets.", func(_ context.Context, in struct{ Name string }) (string, error) { return "Hello, " + in.Name, nil })
	return s
}

// httpClient returns a client that authorizes the requests to a URL.
func httpClient(t *testing.T, to string, o auth.Options) client.HTTP {
	t.Helper()
	tr, err := auth.NewTransport(to, &o)
	if err != nil {
		t.Fatal(err)
	}
	return client.HTTP{Client: &http.Client{Transport: tr}}
}

// Every request of every transport has the token, except for the first one, which is refused.
func TestTransportsOverHTTP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		handler  http.Handler
		revision mcp.Revision
		methods  []string // of the requests, each at least once
		scheme   string
	}{
		{"Streamable HTTP", streamable.Handler(newServer(), nil), "", []string{"POST"}, "http"},
		{"Streamable HTTP with a session", streamable.Handler(newServer(), nil), mcp.Revision20251125, []string{"POST", "GET", "DELETE"}, "http"},
		{"HTTP+SSE", sse.Handler(newServer(), nil), "", []string{"POST", "GET"}, "http"},
		{"WebSocket", websocket.Handler(newServer(), nil), "", []string{"GET"}, "ws"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			as := authtest.Start(t, nil)
			rs := as.Protect(t, tt.handler)
			to := tt.scheme + strings.TrimPrefix(rs.URL, "http")
			c, err := client.Dial(t.Context(), to, &client.Options{
				HTTP: httpClient(t, to, auth.Options{Login: approve(as)}), Wire: client.Wire{Revision: tt.revision},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := client.Call[string](t.Context(), c, "greet", map[string]string{"Name": "Ada"}); err != nil || got != "Hello, Ada" {
				t.Errorf("%q, %v", got, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for i, h := range rs.Headers() {
				if i > 0 && !strings.HasPrefix(h.Get("Authorization"), "Bearer ") {
					t.Errorf("request %d has no token: %v", i, h)
				}
			}
			if n := as.Count("authorize"); n != 1 {
				t.Errorf("%d logins", n)
			}
		})
	}
}

// If the authorization server changes while a client is connected, each kind of request then uses
// tokens of the new one, which gets nothing of the first one.
func TestAuthorizationServerChangesInSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		handler  http.Handler
		revision mcp.Revision
		open     func(*client.Client) error // sends the kind of request; nil for the POST of a call
	}{
		{"POST", streamable.Handler(newServer(), nil), "", nil},
		{"POST in a session", streamable.Handler(newServer(), nil), mcp.Revision20251125, nil},
		{"GET stream", streamable.Handler(newServer(), nil), mcp.Revision20251125, func(c *client.Client) error { return c.Reconnect(context.Background()) }},
		{"HTTP+SSE", sse.Handler(newServer(), nil), "", nil},
		{"GET of HTTP+SSE", sse.Handler(newServer(), nil), "", func(c *client.Client) error { return c.Reconnect(context.Background()) }},
		{"WebSocket", websocket.Handler(newServer(), nil), "", func(c *client.Client) error { return c.Reconnect(context.Background()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			first, second := authtest.Start(t, nil), authtest.Start(t, nil)
			rs := first.Protect(t, tt.handler)
			to := rs.URL
			if tt.name == "WebSocket" {
				to = "ws" + strings.TrimPrefix(to, "http")
			}
			store, user := auth.NewStore(), approve(first)
			login := auth.LoginFunc(func(ctx context.Context, r auth.LoginRequest) (url.Values, error) { return user(ctx, r) })
			c, err := client.Dial(t.Context(), to, &client.Options{
				HTTP: httpClient(t, to, auth.Options{Login: login, Store: store}), Wire: client.Wire{Revision: tt.revision},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			call := func() {
				t.Helper()
				if got, err := client.Call[string](t.Context(), c, "greet", map[string]string{"Name": "Ada"}); err != nil || got != "Hello, Ada" {
					t.Errorf("%q, %v", got, err)
				}
			}
			call()
			old, err := store.Load(t.Context(), auth.RecordKey(rs.URL, ""))
			if err != nil || old == nil {
				t.Fatal(old, err)
			}
			user = approve(second)
			rs.SetServer(second)
			if tt.open != nil {
				if err := tt.open(c); err != nil {
					t.Fatal(err)
				}
			}
			call()
			if n := second.Count("register"); n != 1 || second.Count("authorize") != 1 || first.Count("authorize") != 1 {
				t.Errorf("%d registrations and %d logins at the second server, %d logins at the first", n, second.Count("authorize"), first.Count("authorize"))
			}
			for _, endpoint := range []string{"register", "authorize", "token", "authorization_code", "refresh_token", "revoke", "metadata"} {
				for _, r := range second.Requests(endpoint) {
					sent := fmt.Sprint(r.Form, r.Header)
					for _, secret := range []string{old.AccessToken, old.RefreshToken, old.Registration.ClientID} {
						if strings.Contains(sent, secret) {
							t.Errorf("the second server got %q at %s", secret, endpoint)
						}
					}
				}
			}
		})
	}
}

// A dial that needs a login fails with that error, at once, and not as a lost connection.
func TestDialWithoutUser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		target func(to string, h client.HTTP) any
	}{
		{"URL", func(to string, _ client.HTTP) any { return to }},
		{"HTTP+SSE", func(to string, h client.HTTP) any { return sse.URL{URL: to, Client: h.Client} }},
		{"WebSocket", func(to string, _ client.HTTP) any { return "ws" + strings.TrimPrefix(to, "http") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			as := authtest.Start(t, nil)
			rs := as.Protect(t, streamable.Handler(newServer(), nil))
			h := httpClient(t, rs.URL, auth.Options{})
			_, err := client.Dial(t.Context(), tt.target(rs.URL, h), &client.Options{HTTP: h})
			var needs *auth.NeedsLogin
			if !errors.As(err, &needs) || errors.Is(err, mcp.ErrConnection) {
				t.Errorf("%v", err)
			}
			if n := len(rs.Headers()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// The client does not try again to connect when a login is needed.
func TestLostLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	rs := as.Protect(t, streamable.Handler(newServer(), nil))
	store := auth.NewStore()
	if tr, err := auth.NewTransport(rs.URL, &auth.Options{Login: approve(as), Store: store}); err != nil {
		t.Fatal(err)
	} else if err := tr.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), rs.URL, &client.Options{HTTP: httpClient(t, rs.URL, auth.Options{Store: store})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	as.Revoke(true, false)
	var needs *auth.NeedsLogin
	if _, err := client.Call[string](t.Context(), c, "greet", nil); !errors.As(err, &needs) || errors.Is(err, mcp.ErrConnection) {
		t.Errorf("call: %v", err)
	}
	if err := c.Reconnect(t.Context()); !errors.As(err, &needs) {
		t.Errorf("reconnect: %v", err)
	}
}

// The caller of a dial learns that a user is logging in, so that the time does not count.
func TestLoginIsReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		handler http.Handler
		target  func(to string, h *http.Client) any
	}{
		{"Streamable HTTP", streamable.Handler(newServer(), nil), func(to string, h *http.Client) any { return streamable.URL{URL: to, Client: h} }},
		{"HTTP+SSE", sse.Handler(newServer(), nil), func(to string, h *http.Client) any { return sse.URL{URL: to, Client: h} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			as := authtest.Start(t, nil)
			rs := as.Protect(t, tt.handler)
			var mu sync.Mutex
			var phases []string
			ctx := startphase.WithObserver(t.Context(), func(p startphase.Phase) {
				mu.Lock()
				defer mu.Unlock()
				phases = append(phases, p.LoginURL)
			})
			h := httpClient(t, rs.URL, auth.Options{Login: approve(as)})
			c, err := client.Dial(ctx, tt.target(rs.URL, h.Client), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			mu.Lock()
			defer mu.Unlock()
			if len(phases) != 2 || !strings.HasPrefix(phases[0], as.URL+"/authorize?") || phases[1] != "" {
				t.Errorf("phases %q", phases)
			}
		})
	}
}

// An SSE endpoint and a redirect of another origin get no token.
func TestTokenStaysAtItsOrigin(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.Header.Get("Authorization"))
	}))
	defer foreign.Close()
	for _, handler := range []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, foreign.URL+"/mcp", http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("event: endpoint\ndata: " + foreign.URL + "/messages\n\n"))
		},
	} {
		as := authtest.Start(t, nil)
		rs := as.Protect(t, handler)
		_, err := client.Dial(t.Context(), rs.URL, &client.Options{HTTP: httpClient(t, rs.URL, auth.Options{Login: approve(as)})})
		if err == nil || !strings.Contains(err.Error(), "another origin") {
			t.Errorf("%v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "Bearer") }) {
		t.Errorf("the other origin got %q", seen)
	}
}
