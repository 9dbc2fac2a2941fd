package configured_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

var quiet = slog.New(slog.DiscardHandler)

// defined returns the definition of a server called s that a file has with this entry.
func defined(t *testing.T, entry string) hub.Definition {
	t.Helper()
	return definedIn(t, entry, nil)
}

// definedIn is defined for a replica of a cluster, unless share is nil.
func definedIn(t *testing.T, entry string, share func(server string, target any, entry string) any) hub.Definition {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dowel.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"s": `+entry+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "value of " + name, name == "TOKEN" }
	source := configured.New(hub.New(nil), configured.Options{
		Config:  config.Options{Files: []string{path}, GOOS: "linux", Env: env},
		Choices: &choices{}, Logger: quiet, ShareInCluster: share,
	})
	definitions := source.Look()
	if len(definitions) != 1 || definitions[0].Hold != (hub.Hold{}) {
		t.Fatalf("%+v", definitions)
	}
	return definitions[0]
}

// startHub returns a hub of one server, which is not starting any more.
func startHub(t *testing.T, o hub.Options, d hub.Definition) *hub.Hub {
	t.Helper()
	h := hub.New(&o)
	t.Cleanup(func() { h.Close() })
	h.Apply([]hub.Definition{d}, "the test begins")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !h.Settle(ctx) {
		t.Fatalf("the server is still starting: %+v", h.Upstream(d.Name).State())
	}
	return h
}

// An entry becomes the target, limits and rules of its definition.
func TestDefine(t *testing.T) {
	d := defined(t, `{"command": "npx", "args": ["-y", "${TOKEN}"], "env": {"A": "${TOKEN}"}, "cwd": "/", "startTimeout": "30s", "idleTimeout": "5m", "timeout": "1h",
		"tools": {"only": ["a"], "hide": ["b"], "rename": {"a": "c"}, "describe": {"a": "d"}}, "sharing": "session", "lazy": true, "idleStop": "10m",
		"watchPaths": ["/dist/**"], "serialize": true, "revision": "legacy", "keepDetached": true}`)
	if want := (stdio.Command{Path: "npx", Args: []string{"-y", "value of TOKEN"}, Env: map[string]string{"A": "value of TOKEN"}, Dir: "/", KeepDetached: true}); !reflect.DeepEqual(d.Target, want) {
		t.Errorf("%+v, want %+v", d.Target, want)
	}
	if o := d.Options; o.Limits.Start != 30*time.Second || o.Limits.Connect != o.Limits.Start || !o.Wire.SerializeAsks || o.Wire.Revision != mcp.LatestLegacyRevision {
		t.Errorf("%v %v %v %v", o.Limits.Start, o.Limits.Connect, o.Wire.SerializeAsks, o.Wire.Revision)
	}
	rules := hub.ToolRules{Only: []string{"a"}, Hide: []string{"b"}, Rename: map[string]string{"a": "c"}, Describe: map[string]string{"a": "d"}}
	if d.Name != "s" || d.Idle != 5*time.Minute || d.Total != time.Hour || d.Sharing != hub.SharePerSession || !d.Lazy || d.IdleStop != 10*time.Minute ||
		!slices.Equal(d.WatchPaths, []string{"/dist/**"}) || !reflect.DeepEqual(d.Tools, rules) || d.Hold != (hub.Hold{}) {
		t.Errorf("%+v", d)
	}
	if d.Origin != "npx -y ****" {
		t.Errorf("what is shown of it is %q", d.Origin)
	}
	for revision, want := range map[string]mcp.Revision{"auto": "", "modern": mcp.LatestRevision, "2025-03-26": mcp.Revision20250326} {
		if got := defined(t, `{"command": "x", "revision": "`+revision+`"}`).Options.Wire.Revision; got != want {
			t.Errorf("%s pins %q", revision, got)
		}
	}
	if got := defined(t, `{"command": "x", "sharing": "client"}`); got.Sharing != hub.SharePerClient || got.Total != 0 || got.Options.Limits.Start != 0 {
		t.Errorf("%+v", got)
	}
}

// guarded serves MCP over HTTP to requests with two header fields, and records the requests.
type guarded struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{}
	quietly := transport.ServerOptions{Logger: quiet}
	now, then := streamable.Handler(everything.New(), &streamable.Options{ServerOptions: quietly}), sse.Handler(everything.New(), &streamable.Options{ServerOptions: quietly})
	mux := http.NewServeMux()
	mux.Handle("/mcp", now)
	mux.Handle("/sse", then)
	sockets := websocket.Handler(everything.New(), &websocket.Options{ServerOptions: quietly})
	mux.Handle("/ws", sockets)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer value of TOKEN" || r.Header.Get("X-Team") != "wood" {
			g.note("refused " + r.Method)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.note(r.Method)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = now.Shutdown(ctx)
		_ = then.Shutdown(ctx)
		_ = sockets.Shutdown(ctx)
		g.Close()
	})
	return g
}

func (g *guarded) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, what)
}

// awaitRequest waits until there was a request of the method.
func (g *guarded) awaitRequest(t *testing.T, method string) {
	t.Helper()
	polltest.Until(t, method, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.Contains(g.seen, method)
	})
}

// The header fields of an entry are in every request of each transport, and are not shown to users.
func TestHeaders(t *testing.T) {
	for _, tt := range []struct{ name, path, more, methods string }{
		{"auto", "/mcp", "", "POST"},
		{"http", "/mcp", `, "type": "http"`, "POST"},
		{"http of before", "/mcp", `, "type": "streamable-http", "revision": "legacy"`, "DELETE GET POST"},
		{"sse", "/sse", `, "type": "sse"`, "GET POST"},
		{"sse unsaid", "/sse", "", "GET POST"},
		{"ws", "/ws", `, "type": "ws"`, "GET"},
		{"websocket", "/ws", `, "type": "websocket"`, "GET"},
		{"websocket unsaid", "/ws", "", "GET"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuarded(t)
			if tt.path == "/ws" {
				g.URL = "ws" + strings.TrimPrefix(g.URL, "http")
			}
			d := defined(t, fmt.Sprintf(`{"url": "%s%s", "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "wood"}%s}`, g.URL, tt.path, tt.more))
			h := startHub(t, hub.Options{Logger: quiet}, d)
			u := h.Upstream("s")
			call := &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"echo","arguments":{"message":"hi"}}`)}
			if res, err := u.RoundTrip(t.Context(), hub.Caller{}, call); err != nil || !strings.Contains(string(res.Raw), "hi") {
				t.Errorf("%v; %+v", err, u.State())
			}
			if tt.methods != "POST" {
				g.awaitRequest(t, "GET")
			}
			shown, err := json.Marshal(control.DescribeAll(h))
			if err != nil || strings.Contains(string(shown), "value of") || !strings.Contains(string(shown), g.URL) {
				t.Errorf("%s, %v", shown, err)
			}
			h.Close()
			g.mu.Lock()
			defer g.mu.Unlock()
			slices.Sort(g.seen)
			got := strings.Join(slices.Compact(g.seen), " ")
			for _, method := range strings.Fields(tt.methods) {
				if !strings.Contains(got, method) {
					t.Errorf("there were %s, and not %s", got, method)
				}
			}
			if strings.Contains(got, "refused") {
				t.Errorf("without the fields there were %s", got)
			}
		})
	}
}

// The state of a server that refuses the credentials says so without showing them.
func TestRefusedCredentials(t *testing.T) {
	g := newGuarded(t)
	h := startHub(t, hub.Options{MinBackoff: time.Hour, Logger: quiet}, defined(t, `{"url": "`+g.URL+`/mcp", "headers": {"Authorization": "Bearer wrong-${TOKEN}"}}`))
	s := h.Upstream("s").State()
	if s.Status != hub.NeedsAuthorization || s.Err == nil || s.Diagnosis == nil || s.Diagnosis.Advice == "" || strings.Contains(fmt.Sprint(s.Err, *s.Diagnosis), "value of") {
		t.Errorf("%+v", s)
	}
}
