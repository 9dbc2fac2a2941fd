package configured_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// In a cluster, one replica connects for all to each server whose entry asks for it, and to each
// server over HTTP that opens a session, unless its entry says otherwise.
func TestDefineInCluster(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "x"}`:                                        "",
		`{"command": "x", "sharing": "cluster"}`:                  "always",
		`{"url": "http://h/mcp"}`:                                 "with a session",
		`{"type": "sse", "url": "http://h/sse"}`:                  "with a session",
		`{"type": "remote", "url": "http://h/mcp"}`:               "with a session",
		`{"url": "http://h/mcp", "sharing": "cluster"}`:           "always",
		`{"url": "http://h/mcp", "sharing": "shared"}`:            "",
		`{"url": "http://h/mcp", "sharing": "client"}`:            "",
		`{"url": "http://localhost:9000/mcp"}`:                    "",
		`{"type": "sse", "url": "http://127.1.2.3/sse"}`:          "",
		`{"type": "remote", "url": "http://[::1]:9000/mcp"}`:      "",
		`{"url": "http://localhost/mcp", "sharing": "cluster"}`:   "always",
		`{"type": "ws", "url": "ws://h/mcp"}`:                     "",
		`{"type": "ws", "url": "ws://h/mcp","sharing":"cluster"}`: "always",
	} {
		got := ""
		d := definedIn(t, entry, func(server string, target any, same string) any {
			if got = "always"; same != "" {
				got = "with a session"
			}
			if server != "s" || target == nil {
				t.Errorf("%s: server %q, target %v", entry, server, target)
			}
			return target
		})
		alone := defined(t, entry)
		if got != want || d.Note != "" || (d.Fingerprint != alone.Fingerprint) != (want != "") {
			t.Errorf("%s: it is shared %q, want %q; note %q", entry, got, want, d.Note)
		}
		if isNoted := strings.Contains(alone.Note, "no replica of a cluster"); isNoted != (want == "always") {
			t.Errorf("%s without a cluster: %q", entry, alone.Note)
		}
	}
}

// Replicas share a session only if their entries are the same after the variables are expanded.
// What tells them apart does not show a secret.
func TestEntriesThatShareSession(t *testing.T) {
	sameOf := func(entry string) (same string) {
		definedIn(t, entry, func(_ string, target any, id string) any {
			same = id
			return target
		})
		return same
	}
	one := sameOf(`{"url": "http://h/mcp", "headers": {"X-Key": "${env:TOKEN}"}}`)
	if again := sameOf(`{"url": "http://h/mcp", "headers": {"X-Key": "value of TOKEN"}}`); one == "" || again != one || strings.Contains(one, "TOKEN") {
		t.Errorf("%q and %q for the same entry", one, again)
	}
	for _, other := range []string{`{"url": "http://h/other", "headers": {"X-Key": "value of TOKEN"}}`, `{"url": "http://h/mcp", "headers": {"X-Key": "another"}}`} {
		if sameOf(other) == one {
			t.Errorf("%s shares a session with another entry", other)
		}
	}
}

// Users can log in at a server that one replica connects to for all.
func TestUserLoginInCluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dowel.json")
	if err := os.WriteFile(path, []byte(`{"gateway": {"auth": {"issuers": ["https://as.example"], "url": "https://gateway.example"}},
		"mcpServers": {"s": {"url": "https://remote.invalid/mcp", "sharing": "cluster", "oauth": {"per": "user"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hub.New(&hub.Options{Logger: quiet, MinBackoff: time.Hour})
	t.Cleanup(func() { h.Close() })
	isShared := false
	source := configured.New(h, configured.Options{
		Config:  config.Options{Files: []string{path}, GOOS: "linux", Env: func(string) (string, bool) { return "", false }},
		Choices: &choices{}, Logins: auth.NewStore(), Logger: quiet,
		ShareInCluster: func(_ string, target any, _ string) any {
			isShared = true
			return target
		},
	})
	source.Load("the test begins")
	ctx := httpwire.WithAuthorization(context.Background(), &httpwire.Authorization{
		Principal: mcp.Principal{ID: "ada"}, Token: &resource.Token{Issuer: "https://as.example"},
	})
	if login, ok := source.UserLogin(ctx, "s"); !ok || !isShared || login.Principal != "ada" {
		t.Errorf("%+v, %v; shared: %v", login, ok, isShared)
	}
}
