//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// countedServer is a server over HTTP that counts the sessions that clients open.
type countedServer struct {
	url string

	mu       sync.Mutex
	sessions int
}

// startCounted starts a server. With legacy revisions alone, it knows no server/discover.
func startCounted(t *testing.T, handler func(mcp.Handler, *streamable.Options) http.Handler, legacy bool) *countedServer {
	s := &countedServer{}
	o := &streamable.Options{}
	if legacy {
		o.Revisions = []mcp.Revision{mcp.Revision20251125, mcp.Revision20250618}
	}
	h := handler(everything.New(), o)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"initialize"`)) {
			s.mu.Lock()
			s.sessions++
			s.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	s.url = web.URL
	t.Cleanup(func() {
		if stopping, ok := h.(interface{ Shutdown(context.Context) error }); ok {
			_ = stopping.Shutdown(context.Background())
		}
		web.CloseClientConnections()
		web.Close()
	})
	return s
}

func (s *countedServer) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// httpServers are replicas with servers over HTTP, whose entries say nothing of sharing but one.
type httpServers struct {
	sharedServers
	legacy, old, modern, each *countedServer
}

func startHTTPServers(t *testing.T, n int) *httpServers {
	now := func(h mcp.Handler, o *streamable.Options) http.Handler { return streamable.Handler(h, o) }
	s := &httpServers{
		sharedServers: sharedServers{t: t},
		legacy:        startCounted(t, now, true),
		modern:        startCounted(t, now, false),
		each:          startCounted(t, now, true),
		old:           startCounted(t, func(h mcp.Handler, o *streamable.Options) http.Handler { return sse.Handler(h, o) }, true),
	}
	s.hideLoopback()
	cluster := natstest.Start(t, nil).ClientURL()
	for range n {
		u := newTestUser(t)
		u.writeFile(u.userFile(), fmt.Sprintf(`{"gateway": {"token": "a-token-of-all-replicas"}, "mcpServers": {
			"legacy": {"url": %q}, "old": {"type": "sse", "url": %q}, "modern": {"type": "http", "url": %q}, "each": {"type": "http", "url": %q, "sharing": "shared"}}}`,
			s.legacy.url, s.old.url, s.modern.url, s.each.url))
		s.users, s.urls = append(s.users, u), append(s.urls, u.startDaemon("--cluster", cluster))
	}
	s.awaitReady()
	return s
}

// hideLoopback gives the servers URLs at hosts that only a proxy knows: the servers of loopback
// addresses are not shared.
func (s *httpServers) hideLoopback() {
	targets := map[string]*url.URL{}
	for name, server := range map[string]*countedServer{"legacy.invalid": s.legacy, "old.invalid": s.old, "modern.invalid": s.modern, "each.invalid": s.each} {
		target, err := url.Parse(server.url)
		if err != nil {
			s.t.Fatal(err)
		}
		targets[name], server.url = target, "http://"+name
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(targets[r.In.Host]) },
	})
	s.t.Cleanup(proxy.Close)
	s.t.Cleanup(proxy.CloseClientConnections)
	s.t.Setenv("HTTP_PROXY", proxy.URL)
	s.t.Setenv("http_proxy", "")
	s.t.Setenv("NO_PROXY", "")
	s.t.Setenv("no_proxy", "")
}

func (s *httpServers) awaitReady() {
	for _, u := range s.users {
		u.awaitStates(map[string]hub.Status{"legacy": hub.Ready, "old": hub.Ready, "modern": hub.Ready, "each": hub.Ready})
	}
}

// expectSessions compares the number of sessions that the servers have opened.
func (s *httpServers) expectSessions(legacy, old, each int, when string) {
	s.t.Helper()
	if a, b, c := s.legacy.opened(), s.old.opened(), s.each.opened(); a != legacy || b != old || c != each {
		s.t.Errorf("%s: legacy, old and each have opened %d, %d and %d sessions, want %d, %d and %d", when, a, b, c, legacy, old, each)
	}
	if n := s.modern.opened(); n != 0 {
		s.t.Errorf("%s: the modern server has opened %d sessions, want none", when, n)
	}
}

// A legacy server over HTTP has one session for all replicas, with what crosses from its
// owner to the others. A modern server, which has none, is reached by each replica. When the
// owner is killed, one replica opens the session again: calls in flight say what is lost,
// and subscriptions continue.
func TestSessionOncePerCluster(t *testing.T) {
	s := startHTTPServers(t, 3)
	s.expectSessions(1, 1, 3, "at first")
	for _, name := range []string{"modern", "each"} {
		for _, u := range s.users {
			if at := u.serverStates()[name].RunsAt; at != "" {
				t.Errorf("%s runs at %q, want no owner", name, at)
			}
		}
	}
	for _, server := range []string{"legacy", "old"} {
		other := (s.owner(server) + 1) % len(s.users)
		for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
			s.useServer(s.dial(other, revision), server, fmt.Sprintf("%s for a client of %s", server, revision))
		}
	}
	s.killSessionOwner("legacy")
	s.expectSessions(2, s.old.opened(), 3, "after the kill")
	if n := s.old.opened(); n > 2 {
		t.Errorf("the server old has opened %d sessions", n)
	}
}

// killSessionOwner kills the owner of a session during a call and a subscription of clients of
// another replica.
func (s *httpServers) killSessionOwner(server string) {
	t := s.t
	owner := s.owner(server)
	other := (owner + 1) % len(s.users)
	follower := s.dial(other, mcp.LatestRevision)
	w, err := follower.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{wirename.ResourceURI(server, "test://watched-resource")}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	updates := make(chan struct{}, 100)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer w.Close()
	reading.Go(func() {
		for change, err := range w.Changes() {
			if err == nil && change.Method == mcp.NotificationResourceUpdated {
				updates <- struct{}{}
			}
		}
	})
	ended := s.beginSlowCall(other, server)
	s.kill(owner)
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the session at the server "+server+" is lost") {
			t.Errorf("the call in flight: %v, want the cause", err)
		}
	case <-time.After(polltest.Limit):
		t.Fatal("the call in flight has not ended")
	}
	s.awaitReady()
	awaitUpdate := func(when string) {
		select {
		case <-updates:
		case <-time.After(polltest.Limit):
			t.Fatalf("%s: no update of the resource", when)
		}
	}
	awaitUpdate("after the new session") // a change may have been missed
	for i := range s.users {
		got, err := client.Call[string](t.Context(), s.dial(i, mcp.LatestRevision), server+"__echo", map[string]string{"message": "hello"})
		if err != nil || !strings.Contains(got, "hello") {
			t.Errorf("a call after that: %q, %v", got, err)
		}
	}
	for len(updates) > 0 {
		<-updates
	}
	if _, err := client.Call[string](t.Context(), follower, server+"__test_trigger_resource_update", nil); err != nil {
		t.Error(err)
	}
	awaitUpdate("after a change")
	s.owner(server)
}

// beginSlowCall makes a call of a client of a replica, and returns when it runs.
func (s *sharedServers) beginSlowCall(replica int, server string) (ended chan error) {
	c := s.dial(replica, mcp.LatestRevision)
	began := make(chan struct{}, 100)
	ended = make(chan error, 1)
	go func() {
		_, err := client.Call[string](s.t.Context(), c, server+"__slow", map[string]int{"seconds": 600}, client.CallOptions{OnProgress: func(mcp.ProgressParams) {
			select {
			case began <- struct{}{}:
			default:
			}
		}})
		ended <- err
	}()
	<-began
	return ended
}

// kill kills a replica.
func (s *sharedServers) kill(replica int) {
	u := s.users[replica]
	if err := u.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = u.cmd.Wait() // killed
	u.cmd = nil
	s.users = append(s.users[:replica:replica], s.users[replica+1:]...)
	s.urls = append(s.urls[:replica:replica], s.urls[replica+1:]...)
}
