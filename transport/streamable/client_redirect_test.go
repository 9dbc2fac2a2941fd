package streamable_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// startOtherOrigin starts a server of another origin, which counts its requests.
func startOtherOrigin(t *testing.T) (url string, arrived *atomic.Int32) {
	arrived = new(atomic.Int32)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(web.Close)
	return web.URL, arrived
}

var redirects = []int{301, 302, 303, 307, 308}

// A redirect to another origin must be an error, and the other origin must get no request: not when
// dialing, not by a call, and not for the session stream.
func TestRedirectToAnotherOrigin(t *testing.T) {
	secret := func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer secret"}, "X-Api-Key": {"secret"}}, nil
	}
	for _, status := range redirects {
		for _, on := range []string{mcp.MethodDiscover, mcpwire.MethodInitialize, mcpwire.NotificationInitialized, mcp.MethodCallTool, "GET"} {
			t.Run(on+" "+strconv.Itoa(status), func(t *testing.T) {
				other, arrived := startOtherOrigin(t)
				redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other+"/mcp", status) }
				b := &fakeServer{session: "s"}
				revision := mcp.Revision20251125
				switch on {
				case mcp.MethodDiscover:
					revision = mcp.LatestRevision
				case "GET":
					b.get = redirect
				}
				b.post = func(w http.ResponseWriter, r *http.Request, m posted) bool {
					if m.Method == on {
						redirect(w, r)
					}
					return m.Method == on
				}
				c, err := dialFake(t, b.start(t), revision, client.Options{HTTP: client.HTTP{Header: secret}})
				if err == nil && on != "GET" {
					_, err = callFake(t, c)
				}
				if on != "GET" && (err == nil || !strings.Contains(err.Error(), "another origin")) {
					t.Errorf("got %v, want an error that names another origin", err)
				}
				if on == "GET" {
					polltest.Until(t, "a request for the stream with credentials", func() bool { return b.last("GET").Get("X-Api-Key") == "secret" })
					c.Close() // ends the reading of the stream
				}
				if n := arrived.Load(); n > 0 {
					t.Errorf("%d requests went to the other origin", n)
				}
			})
		}
	}
}

// A redirect within the origin is followed if it keeps the method and the body. One that would turn
// the POST into a GET is an error, not a sign of an older server.
func TestRedirectWithinTheOrigin(t *testing.T) {
	for _, status := range redirects {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			inBothEras(t, func(t *testing.T, r mcp.Revision) {
				b := &fakeServer{session: "s"}
				b.post = func(w http.ResponseWriter, r *http.Request, _ posted) bool {
					if r.URL.Path == "/moved" {
						return false
					}
					http.Redirect(w, r, "/moved", status)
					return true
				}
				c, err := dialFake(t, b.start(t), r, client.Options{HTTP: client.HTTP{Header: func(context.Context) (http.Header, error) {
					return http.Header{"X-Api-Key": {"secret"}}, nil
				}}})
				if status < 307 {
					if err == nil || !strings.Contains(err.Error(), "redirect") {
						t.Errorf("%v", err)
					}
					if n := b.count("GET"); n > 0 {
						t.Errorf("%d messages became GETs", n)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got, err := callFake(t, c); err != nil || got != "fine" {
					t.Errorf("%q, %v", got, err)
				}
				if h := b.last(mcp.MethodCallTool); h.Get("X-Api-Key") != "secret" || h.Get("Mcp-Protocol-Version") != string(r) {
					t.Errorf("%v", h)
				}
			})
		})
	}
}

// A server that redirects in a circle must not be followed without end.
func TestRedirectForEver(t *testing.T) {
	b := &fakeServer{post: func(w http.ResponseWriter, r *http.Request, _ posted) bool {
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		return true
	}}
	if _, err := dialFake(t, b.start(t), mcp.LatestRevision, client.Options{}); err == nil || !strings.Contains(err.Error(), "redirected more than 10 times") {
		t.Errorf("%v", err)
	}
}

// A redirect from http to https leaves the origin unless both use their default port. Credentials
// must not be sent there.
func TestRedirectToAnotherPort(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed, with %q", r.Header.Get("Authorization"))
	}))
	defer secure.Close()
	plain := httptest.NewServer(http.RedirectHandler(secure.URL, http.StatusTemporaryRedirect))
	defer plain.Close()
	_, err := client.Dial(t.Context(), plain.URL, &client.Options{
		Wire: client.Wire{Verdicts: new(transport.Verdicts)},
		HTTP: client.HTTP{Client: secure.Client(), Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer secret"}}, nil
		}},
	})
	if err == nil || !strings.Contains(err.Error(), "another origin") {
		t.Errorf("%v", err)
	}
	secure.Client().CloseIdleConnections()
}
