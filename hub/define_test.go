package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// defined returns the definition of a server called s, of the entry of a file.
func defined(t *testing.T, entry string) hub.Definition {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dowel.json")
	put(t, path, `{"mcpServers": {"s": `+entry+`}}`)
	set := config.Load(config.Options{Files: []string{path}, GOOS: "linux", Env: func(name string) (string, bool) {
		return "value of " + name, name == "TOKEN"
	}})
	d, problems := set.Server("s").Resolve(set.Variables)
	if d == nil {
		t.Fatal(problems)
	}
	return hub.Define(d)
}

// What an entry says is what is started, with its limits and rules.
func TestDefine(t *testing.T) {
	d := defined(t, `{"command": "npx", "args": ["-y", "${TOKEN}"], "env": {"A": "${TOKEN}"}, "cwd": "/", "startTimeout": "30s", "idleTimeout": "5m", "timeout": "1h",
		"tools": {"only": ["a"], "hide": ["b"], "rename": {"a": "c"}, "describe": {"a": "d"}}, "sharing": "session", "lazy": true, "idleStop": "10m",
		"watchPaths": ["/dist/**"], "serialize": true, "revision": "legacy"}`)
	if want := (stdio.Command{Path: "npx", Args: []string{"-y", "value of TOKEN"}, Env: map[string]string{"A": "value of TOKEN"}, Dir: "/"}); !reflect.DeepEqual(d.Target, want) {
		t.Errorf("%+v, want %+v", d.Target, want)
	}
	if o := d.Options; o.Start != 30*time.Second || o.Connect != o.Start || !o.SerializeAsks || o.Revision != mcp.LatestLegacyRevision {
		t.Errorf("%v %v %v %v", o.Start, o.Connect, o.SerializeAsks, o.Revision)
	}
	rules := hub.Rules{Only: []string{"a"}, Hide: []string{"b"}, Rename: map[string]string{"a": "c"}, Describe: map[string]string{"a": "d"}}
	if d.Name != "s" || d.Idle != 5*time.Minute || d.Total != time.Hour || d.Sharing != hub.SharePerSession || !d.Lazy || d.IdleStop != 10*time.Minute ||
		!slices.Equal(d.WatchPaths, []string{"/dist/**"}) || !reflect.DeepEqual(d.Rules, rules) || d.Hold != (hub.Hold{}) {
		t.Errorf("%+v", d)
	}
	if d.Origin != "npx -y ****" {
		t.Errorf("what is shown of it is %q", d.Origin)
	}
	for revision, want := range map[string]mcp.Revision{"auto": "", "modern": mcp.LatestRevision, "2025-03-26": mcp.Revision20250326} {
		if got := defined(t, `{"command": "x", "revision": "`+revision+`"}`).Options.Revision; got != want {
			t.Errorf("%s pins %q", revision, got)
		}
	}
	if got := defined(t, `{"command": "x", "sharing": "client"}`); got.Sharing != hub.SharePerClient || got.Total != 0 || got.Options.Start != 0 {
		t.Errorf("%+v", got)
	}
}

// guarded serves a server over HTTP to those who show two header fields with every request, and notes the requests.
type guarded struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{}
	quietly := transport.ServerOptions{Logger: quiet}
	now, then := streamable.Handler(echo("web"), &streamable.Options{ServerOptions: quietly}), sse.Handler(echo("web"), &sse.Options{ServerOptions: quietly})
	mux := http.NewServeMux()
	mux.Handle("/mcp", now)
	mux.Handle("/sse", then)
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
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = now.Shutdown(ctx)
		_ = then.Shutdown(ctx)
		g.Close()
	})
	return g
}

func (g *guarded) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, what)
}

// The header fields of an entry go along with every request, of whichever kind, and are shown to nobody.
func TestHeaders(t *testing.T) {
	for _, tt := range []struct{ name, path, more, methods string }{
		{"auto", "/mcp", "", "POST"},
		{"http", "/mcp", `, "type": "http"`, "POST"},
		{"http of before", "/mcp", `, "type": "streamable-http", "revision": "legacy"`, "DELETE GET POST"},
		{"sse", "/sse", `, "type": "sse"`, "GET POST"},
		{"sse unsaid", "/sse", "", "GET POST"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuarded(t)
			d := defined(t, fmt.Sprintf(`{"url": "%s%s", "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "wood"}%s}`, g.URL, tt.path, tt.more))
			h := start(t, hub.Options{Logger: quiet}, d)
			settled(t, h)
			u := h.Upstream("s")
			if got, err := call(t, u, "hi"); err != nil || !strings.Contains(got, "hi") {
				t.Errorf("%s, %v; %+v", got, err, u.State())
			}
			if tt.methods != "POST" {
				until(t, "there is a stream", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return slices.Contains(g.seen, "GET") })
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

// A server that wants other credentials says so in its state, in no words of theirs.
func TestRefusedCredentials(t *testing.T) {
	g := newGuarded(t)
	h := start(t, hub.Options{Base: time.Hour, Logger: quiet}, defined(t, `{"url": "`+g.URL+`/mcp", "headers": {"Authorization": "Bearer wrong-${TOKEN}"}}`))
	settled(t, h)
	s := h.Upstream("s").State()
	if s.Status != hub.NeedsAuthorization || s.Err == nil || s.Diagnosis == nil || s.Diagnosis.Advice == "" || strings.Contains(fmt.Sprint(s.Err, *s.Diagnosis), "value of") {
		t.Errorf("%+v", s)
	}
}

// Servers are told who calls, in both eras, and that there is somebody who can be asked.
func TestIdentity(t *testing.T) {
	for _, tt := range []struct {
		info mcp.Implementation
		want string
	}{{mcp.Implementation{}, "dowel"}, {mcp.Implementation{Name: "joiner", Version: "7"}, "joiner"}} {
		for _, revision := range []mcp.Revision{mcp.LatestLegacyRevision, mcp.LatestRevision} {
			told := make(chan *mcp.Request, 1)
			s := mcp.Chain(echo("s"), before(mcp.MethodListTools, func(req *mcp.Request) *mcp.Result { told <- req; return nil }))
			h := start(t, hub.Options{Info: tt.info, Logger: quiet}, hub.Definition{Name: "s", Target: s, Options: client.Options{Revision: revision}})
			settled(t, h)
			req := <-told
			var who mcp.Implementation
			if err := json.Unmarshal(req.ClientInfo, &who); err != nil || who.Name != tt.want || who.Version == "" || tt.info.Version != "" && who.Version != tt.info.Version {
				t.Errorf("%s: %s, %v", revision, req.ClientInfo, err)
			}
			if c := req.Capabilities(); c.Elicitation == nil || c.Sampling == nil || c.Roots == nil {
				t.Errorf("%s: %s", revision, req.ClientCapabilities)
			}
		}
	}
}
