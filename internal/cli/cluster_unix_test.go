//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// balancer sends requests to the replicas in turn, without regard to sessions. It leaves out
// replicas that do not answer.
type balancer struct {
	url string

	mu       sync.Mutex
	replicas []*url.URL
	turn     int
}

// startBalancer starts a balancer without replicas.
func startBalancer(t *testing.T) *balancer {
	b := &balancer{}
	web := httptest.NewServer(b)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close(); http.DefaultClient.CloseIdleConnections() })
	b.url = web.URL
	return b
}

// add adds a replica.
func (b *balancer) add(t *testing.T, address string) {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = append(b.replicas, at)
}

// next returns the next replica and the number of all.
func (b *balancer) next() (at *url.URL, all int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.replicas[b.turn%len(b.replicas)], len(b.replicas)
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for try, all := 0, 1; try < all; try++ {
		var to *url.URL
		to, all = b.next()
		probe, err := http.Get(to.String() + "/")
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, probe.Body)
		probe.Body.Close()
		proxy := httputil.ReverseProxy{
			Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(to) }, // with the host of the replica
			FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		}
		proxy.ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusBadGateway)
}

// Three processes behind a balancer serve clients of both eras. When one is killed, they continue.
func TestReplicasAsProcesses(t *testing.T) {
	cluster := natstest.Start(t, nil).ClientURL() + "/test"
	var users []*testUser
	at := startBalancer(t)
	for range 3 {
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas", "audit": "`+filepath.Join(u.home, "audit.jsonl")+`"}, "servers": {"everything": `+u.builtInEntry("everything", "")+`}}`)
		users = append(users, u)
		at.add(t, u.startDaemon("--cluster", cluster))
	}
	header := http.Header{"Authorization": {"Bearer a-token-of-all-replicas"}}
	clients := map[string]*client.Client{}
	for name, revision := range map[string]mcp.Revision{"modern": "", "legacy": mcp.Revision20250618} {
		own := &http.Client{Transport: &http.Transport{}}
		c, err := client.Dial(t.Context(), at.url+"/mcp", &client.Options{Wire: client.Wire{Revision: revision}, Logger: slog.New(slog.DiscardHandler),
			HTTP: client.HTTP{Client: own, Header: func(context.Context) (http.Header, error) { return header, nil }}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { c.Close(); own.CloseIdleConnections() })
		clients[name] = c
	}
	call := func(when string) {
		t.Helper()
		for name, c := range clients {
			for range 9 {
				ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
				got, err := client.Call[string](ctx, c, "everything__echo", map[string]string{"message": "hello"})
				cancel()
				if err != nil || !strings.Contains(got, "hello") {
					t.Errorf("%s, %s: %q, %v", name, when, got, err)
				}
			}
		}
	}
	call("three replicas")
	users[0].expectSuccess("One of 3 replicas of the cluster test", "status")
	if out := users[0].runDowel("doctor"); !strings.Contains(out.stderr, "dowel: note: NATS does not tell") || !strings.Contains(out.stderr, "warning: the NATS server keeps one copy") {
		t.Errorf("doctor: %s", out.stderr)
	}
	for _, u := range users {
		polltest.Until(t, "the audit log has the calls of all replicas", func() bool {
			log, err := os.ReadFile(filepath.Join(u.home, "audit.jsonl"))
			return err == nil && strings.Count(string(log), `"tools/call"`) == 18 && strings.Contains(string(log), `"replica":"`)
		})
	}
	began := time.Now()
	if err := users[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = users[1].cmd.Wait() // killed
	users[1].cmd = nil
	call("one was killed")
	t.Logf("the calls after the kill took %v", time.Since(began))
	polltest.Until(t, "the lease of the killed one ends", func() bool {
		return strings.Contains(users[0].runDowel("status").stdout, "One of 2 replicas")
	})
}

// A client of 2024 has its stream at one process, and its messages reach the others, too.
func TestStreamOf2024ThroughReplicas(t *testing.T) {
	cluster := natstest.Start(t, nil).ClientURL()
	at := startBalancer(t)
	var users []*testUser
	for range 2 {
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas"}, "servers": {"everything": `+u.builtInEntry("everything", "")+`}}`)
		users = append(users, u)
		at.add(t, u.startDaemon("--cluster", cluster))
		u.awaitStates(map[string]hub.Status{"everything": hub.Ready})
	}
	header := http.Header{"Authorization": {"Bearer a-token-of-all-replicas"}}
	own := &http.Client{Transport: &http.Transport{}}
	c, err := client.Dial(t.Context(), at.url+"/sse", &client.Options{Logger: slog.New(slog.DiscardHandler),
		HTTP: client.HTTP{Client: own, Header: func(context.Context) (http.Header, error) { return header, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); own.CloseIdleConnections() })
	for range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
		got, err := client.Call[string](ctx, c, "everything__echo", map[string]string{"message": "hello"})
		cancel()
		if err != nil || !strings.Contains(got, "hello") {
			t.Errorf("%q, %v", got, err)
		}
	}
	_ = c.Close()
	for _, u := range users {
		u.stopDaemon()
	}
}

// A user logs in at an upstream through any replicas: the page, its redirects and the repeated call
// reach one after the other.
func TestUserLoginThroughReplicas(t *testing.T) {
	cluster := natstest.Start(t, nil).ClientURL()
	at := startBalancer(t)
	g := &userGateway{users: authtest.Start(t, &authtest.Options{User: "ann"}),
		accounts: authtest.Start(t, &authtest.Options{User: "ann-at-remote", Clients: []authtest.Client{{ID: "gateway", Secret: "canary-secret"}}})}
	g.remote, g.url = startUserUpstream(t, g.accounts), at.url
	var users []*testUser
	for range 2 {
		u := newTestUser(t)
		u.writeFile(u.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q], "url": %q}}, "mcpServers": {"remote": {"url": %q, "oauth": {
			"issuer": %q, "clientId": "gateway", "clientSecret": "canary-secret", "grant": "client_credentials", "per": "user"}}}}`,
			g.users.Issuer, at.url, g.remote.URL, g.accounts.Issuer))
		users = append(users, u)
		at.add(t, u.startDaemon("--cluster", cluster))
		u.awaitStates(map[string]hub.Status{"remote": hub.Ready})
	}
	pages := 0
	visit := func(url string) mcp.ElicitAction {
		pages++
		if status, text, _ := openPage(t, newBrowser(t, 10), url); status != 200 || !strings.Contains(text, "You are logged in at remote") {
			t.Errorf("the page: status %d with %s", status, text)
		}
		return mcp.ElicitAccept
	}
	for n, scopes := range [][]string{nil, {"read"}} {
		g.remote.SetServer(nil, scopes...)
		for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125, mcp.LatestRevision, mcp.LatestRevision} {
			if text := resultText(g.callAs(t, "ann", revision, visit)); pages != n+1 || !strings.Contains(text, "subject=ann-at-remote") {
				t.Errorf("with the scopes %v: %d pages, then %s", scopes, pages, text)
			}
		}
	}
	for _, u := range users {
		u.stopDaemon()
	}
}

// A changed tool that the user accepts at one replica is offered by all. The user needs no other
// step.
func TestAcceptDefinitionsOfReplicas(t *testing.T) {
	cluster := natstest.Start(t, nil).ClientURL()
	var users []*testUser
	for range 2 {
		u := newTestUser(t)
		entry, tools := u.changingEntry(`, "definitions": "hold"`)
		u.writeFile(tools, honestTools)
		u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas"}, "mcpServers": {"a": `+entry+`}}`)
		users = append(users, u)
		u.startDaemon("--cluster", cluster)
		u.awaitStates(map[string]hub.Status{"a": hub.Ready})
		u.expectSuccess("it ran", "call", "a.env", "name=x")
	}
	for _, u := range users {
		u.writeFile(filepath.Join(u.project, "tools.json"), turnedTools)
		u.expectSuccess("turned", "call", "a.turn")
		polltest.Until(t, "the changed tool is withheld", func() bool {
			return strings.Contains(u.runDowel("status").stdout, "the tool env is left out: its definition has changed (")
		})
	}
	users[0].expectSuccess("accepted", "trust", "--definitions", "a", "--yes")
	users[0].expectSuccess("it ran", "call", "a.env", "name=x")
	polltest.Until(t, "the other replica offers the tool", func() bool { return !strings.Contains(users[1].runDowel("status").stdout, "left out") })
	users[1].expectSuccess("it ran", "call", "a.env", "name=x")
	for _, u := range users {
		u.expectSuccess("No definition has changed", "trust", "--definitions")
		u.stopDaemon()
	}
}
