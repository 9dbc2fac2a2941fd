package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// userKey is the context key of the user of a call.
type userKey struct{}

func asUser(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, userKey{}, name)
}

// credentialsOfUser returns the header fields of the user in ctx.
func credentialsOfUser(ctx context.Context) (http.Header, error) {
	h := http.Header{}
	if user, ok := ctx.Value(userKey{}).(string); ok {
		h.Set("authorization", user)
	}
	return h, nil
}

// userServer is a server over HTTP whose results name the user that asks. x://public is the same
// for all users. requests counts the requests that reach it.
func userServer(t *testing.T, requests *atomic.Int64) (url string) {
	t.Helper()
	h := handlers{
		mcp.MethodReadResource: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			requests.Add(1)
			if param(req, "uri") == `"x://public"` {
				res := raw(`{"contents":[{"uri":"x://public","text":"for all"}]}`)
				res.Cache = mcp.Cache{TTL: time.Hour, Scope: mcp.CachePublic}
				return res, nil
			}
			res := raw(fmt.Sprintf(`{"contents":[{"uri":"x://private","text":"secret of %s"}]}`, req.Header["Authorization"]))
			res.Cache = mcp.Cache{TTL: time.Hour, Scope: mcp.CachePrivate}
			return res, nil
		},
		mcp.MethodListTools: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			requests.Add(1)
			res := raw(fmt.Sprintf(`{"tools":[{"name":"tool_of_%s","inputSchema":{"type":"object"}}]}`, req.Header["Authorization"][0]))
			res.Cache = mcp.Cache{TTL: time.Hour} // without a scope, which means private
			return res, nil
		},
	}
	s := httptest.NewServer(streamable.Handler(h, nil))
	t.Cleanup(s.Close)
	return s.URL
}

// wrappedDialer hides from the client that the target is a URL.
type wrappedDialer struct{ transport.Dialer }

// Private results are never served to a call with other credentials (specification page
// server/utilities/caching).
func TestPrivateResultsStayWithTheirCredentials(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		target  func(url string) (any, client.HTTP)
		private int64 // the requests for two private reads of each of two users
	}{
		{"Options.HTTP.Header", func(url string) (any, client.HTTP) { return url, client.HTTP{Header: credentialsOfUser} }, 2},
		{"URL.Header", func(url string) (any, client.HTTP) {
			return streamable.URL{URL: url, Header: credentialsOfUser}, client.HTTP{}
		}, 2},
		{"pointer to a URL", func(url string) (any, client.HTTP) {
			return &streamable.URL{URL: url, Header: credentialsOfUser}, client.HTTP{}
		}, 4},
		{"a dialer around a URL", func(url string) (any, client.HTTP) {
			return wrappedDialer{streamable.URL{URL: url, Header: credentialsOfUser}}, client.HTTP{}
		}, 4},
		{"credentials that change with each request", func(url string) (any, client.HTTP) {
			var n atomic.Int64
			return url, client.HTTP{Header: func(ctx context.Context) (http.Header, error) {
				h, err := credentialsOfUser(ctx)
				h.Set("x-nonce", fmt.Sprint(n.Add(1)))
				return h, err
			}}
		}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			target, http := test.target(userServer(t, &requests))
			c, err := client.Dial(t.Context(), target, &client.Options{HTTP: http})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			read := func(user, uri, want string) {
				t.Helper()
				res, err := c.ReadResource(asUser(t.Context(), user), uri)
				if err != nil {
					t.Fatal(err)
				}
				if got := res.Contents[0].Text; got != want {
					t.Errorf("%s read %q from %s, want %q", user, got, uri, want)
				}
			}
			for range 2 {
				for _, user := range []string{"ada", "bob"} {
					read(user, "x://private", "secret of ["+user+"]")
				}
			}
			if got := requests.Swap(0); got != test.private {
				t.Errorf("private reads made %d requests, want %d", got, test.private)
			}
			for _, user := range []string{"ada", "bob"} {
				read(user, "x://public", "for all")
			}
			if got := requests.Swap(0); got != 1 {
				t.Errorf("two users read a public resource with %d requests, want 1", got)
			}
			for _, user := range []string{"ada", "bob"} {
				tools, err := client.All(c.Tools(asUser(t.Context(), user)))
				if err != nil {
					t.Fatal(err)
				}
				if got, want := tools[0].Name, "tool_of_"+user; got != want {
					t.Errorf("%s sees the tool %s, want %s", user, got, want)
				}
			}
		})
	}
}

// switchingLogin is a RoundTripper that logs in, and can change its user.
type switchingLogin struct{ user atomic.Pointer[string] }

func (l *switchingLogin) LoginID() string { return *l.user.Load() }

func (l *switchingLogin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", *l.user.Load())
	return http.DefaultTransport.RoundTrip(r)
}

// The next user at the same client gets no result of the one before.
func TestPrivateResultsStayWithTheirLogin(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	login := new(switchingLogin)
	login.user.Store(new("ann"))
	c, err := client.Dial(t.Context(), userServer(t, &requests), &client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: login}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, step := range []struct {
		user     string
		requests int64 // so far
	}{{"ann", 1}, {"ann", 1}, {"ben", 2}, {"ben", 2}, {"ann", 2}} {
		login.user.Store(&step.user)
		got, err := c.ReadResource(t.Context(), "x://private")
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.Contents[0]); !strings.Contains(text, "secret of ["+step.user+"]") || requests.Load() != step.requests {
			t.Errorf("%s got %s after %d requests, want %d", step.user, text, requests.Load(), step.requests)
		}
	}
}
