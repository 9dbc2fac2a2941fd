package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// userTripper sends the name of a user with each request.
type userTripper string

func (u userTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-User", string(u))
	return http.DefaultTransport.RoundTrip(r)
}

// Callers with logins of their own have connections of their own, so a session has one user.
func TestLoginFor(t *testing.T) {
	t.Parallel()
	endpoint := streamable.Handler(echo("remote"), nil)
	var mu sync.Mutex
	users := map[string]string{} // by session
	calls := map[string]int{}    // by user
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		user, session := r.Header.Get("X-User"), r.Header.Get("Mcp-Session-Id")
		calls[user]++
		if before, known := users[session]; session != "" && known && before != user {
			t.Errorf("the session of %q is used by %q", before, user)
		}
		users[session] = user
		mu.Unlock()
		endpoint.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = endpoint.Shutdown(context.Background())
		web.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	errBanned := errors.New("bob is banned")
	h := start(t, hub.Options{}, hub.Definition{
		Name: "remote", Target: streamable.URL{URL: web.URL, Client: &http.Client{Transport: userTripper("owner")}},
		Options: client.Options{Wire: client.Wire{Revision: mcp.LatestLegacyRevision}},
		LoginFor: func(_ context.Context, caller hub.Caller) (string, *http.Client, error) {
			switch caller.Principal {
			case "":
				return "", nil, nil
			case "bob":
				return "", nil, errBanned
			}
			return caller.Principal, &http.Client{Transport: userTripper(caller.Principal)}, nil
		},
	})
	call := func(user string) error {
		_, err := h.Upstream("remote").RoundTrip(t.Context(), hub.Caller{Principal: user}, &mcp.Request{
			Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"echo","arguments":{"Text":"hi"}}`),
		})
		return err
	}
	for _, user := range []string{"ann", "cid", "", "ann"} {
		if err := call(user); err != nil {
			t.Errorf("%q: %v", user, err)
		}
	}
	if err := call("bob"); !errors.Is(err, errBanned) {
		t.Errorf("a caller without a login: %v, want %v", err, errBanned)
	}
	h.Close()
	mu.Lock()
	defer mu.Unlock()
	if calls["ann"] == 0 || calls["cid"] == 0 || calls["owner"] == 0 || calls["bob"] != 0 || calls[""] != 0 {
		t.Errorf("requests of %v", calls)
	}
}
