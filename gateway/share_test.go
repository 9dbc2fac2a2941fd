package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// shared serves one upstream, a child process, and takes its clients' principals from a header
// field.
func shared(t *testing.T, sharing hub.Sharing, o hub.Options) *httptest.Server {
	h := hubOf(t, o, hub.Definition{
		Name: "up", Target: child("upstream"), Policy: hub.Policy{Sharing: sharing}, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}},
	})
	settle(t, h)
	s := streamable.Handler(gatewayOf(t, h, gateway.Options{}), &streamable.Options{
		ServerOptions: transport.ServerOptions{Logger: quiet},
		Principal:     func(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.Header.Get("X-User")} },
	})
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Shutdown(ctx)
		web.Close()
	})
	return web
}

// as dials as a principal.
func as(t *testing.T, web *httptest.Server, who string, r mcp.Revision, fields ...string) *client.Client {
	return dial(t, web.URL, client.Options{Logger: quiet, Wire: client.Wire{Revision: r, Verdicts: new(transport.Verdicts)}, HTTP: client.HTTP{Header: func(context.Context) (http.Header, error) {
		h := http.Header{"X-User": {who}}
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		return h, nil
	}}})
}

// process returns the process id of the upstream that serves a client.
func process(t *testing.T, c *client.Client) string {
	t.Helper()
	pid, err := client.Call[string](t.Context(), c, "up__pid", nil)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestSharing(t *testing.T) {
	const now, then = mcp.Revision20260728, mcp.Revision20250618
	for _, tt := range []struct {
		name    string
		sharing hub.Sharing
		same    [6]int // the process of each client below, numbered in the order of their appearance
	}{
		{"by all", hub.Shared, [6]int{0, 0, 0, 0, 0, 0}},
		{"by a client", hub.SharePerClient, [6]int{0, 0, 1, 1, 2, 3}},
		{"by a session", hub.SharePerSession, [6]int{0, 0, 1, 2, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			web := shared(t, tt.sharing, hub.Options{})
			var pids []string
			var got [6]int
			for i, c := range []*client.Client{
				as(t, web, "ada", now), as(t, web, "ada", now), // no sessions: one client
				as(t, web, "bob", then), as(t, web, "bob", then), // two sessions of one principal
				as(t, web, "", then), as(t, web, "", then), // two sessions without a principal
			} {
				pid := process(t, c)
				if process(t, c) != pid {
					t.Errorf("client %d changes its process", i)
				}
				if !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
				got[i] = slices.Index(pids, pid)
			}
			if got != tt.same {
				t.Errorf("processes %v, want %v", got, tt.same)
			}
		})
	}
}

// Modern clients without another identity are told apart by the names in their paths.
func TestSharingByPath(t *testing.T) {
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("upstream"), Policy: hub.Policy{Sharing: hub.SharePerClient}})
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{})
	f := g.HTTPHandler(&gateway.HTTPOptions{Clients: map[string]*gateway.Gateway{"ada": g, "bob": g}})
	web := httptest.NewServer(f)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = f.Shutdown(ctx)
		web.Close()
	})
	at := func(path string) string { return process(t, dial(t, web.URL+path, client.Options{Logger: quiet})) }
	ada, bob, nobody := at("/client/ada/mcp"), at("/client/bob/mcp"), at("/mcp")
	if ada == bob || ada == nobody || bob == nobody || ada != at("/client/ada/mcp") {
		t.Errorf("processes: ada %s, bob %s, nobody %s", ada, bob, nobody)
	}
}

// A modern client cannot use another client's process by sending its session header.
func TestForgedSession(t *testing.T) {
	web := shared(t, hub.SharePerSession, hub.Options{})
	mine := process(t, as(t, web, "", mcp.LatestRevision))
	if got := process(t, as(t, web, "", mcp.LatestRevision, mcpwire.HeaderSessionID, "somebody's")); got != mine {
		t.Error("a session that nobody has verified is taken for one")
	}
}

// An idle process ends, and the next call starts another one.
func TestIdleProcess(t *testing.T) {
	web := shared(t, hub.SharePerClient, hub.Options{ClientIdle: 100 * time.Millisecond})
	c := as(t, web, "ada", mcp.LatestRevision)
	first := process(t, c)
	until(t, "the idle process ends", func() bool {
		time.Sleep(150 * time.Millisecond)
		return process(t, c) != first
	})
	// A call keeps its process, however long it takes.
	if _, err := client.Call[string](t.Context(), c, "up__slow", map[string]float64{"seconds": 0.5}); err != nil {
		t.Error(err)
	}
}

// Subscriptions of a client use the same process as its calls.
func TestSubscriptionOfOwnProcess(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sharing hub.Sharing
		who     string
		r       mcp.Revision
	}{
		{"a principal", hub.SharePerClient, "ada", mcp.LatestRevision},
		{"a principal of before", hub.SharePerClient, "ada", mcp.Revision20251125},
		{"a session", hub.SharePerClient, "", mcp.Revision20251125},
		{"a session of a principal", hub.SharePerSession, "ada", mcp.Revision20251125},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			web := shared(t, tt.sharing, hub.Options{})
			c := as(t, web, tt.who, tt.r)
			w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{watchedURI}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := client.Call[string](t.Context(), c, "up__test_trigger_resource_update", nil); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(time.Minute, func() { w.Close() })
			defer late.Stop()
			for change, err := range w.Changes() {
				if err != nil || change.URI != watchedURI {
					t.Errorf("%+v, %v", change, err)
				}
				return
			}
			t.Error("the change was not reported")
		})
	}
}

// Over HTTP+SSE a stream is a session.
func TestSharingOverSSE(t *testing.T) {
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: child("upstream"), Policy: hub.Policy{Sharing: hub.SharePerClient}})
	settle(t, h)
	web := serveHTTP(t, gatewayOf(t, h, gateway.Options{}))
	before := end{mcp.Revision20241105, true}
	one, two := dial(t, reach(web, before), client.Options{Logger: quiet}), dial(t, reach(web, before), client.Options{Logger: quiet})
	if process(t, one) == process(t, two) || process(t, one) != process(t, one) {
		t.Error("two sessions share a process")
	}
}
