package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"go.uber.org/goleak"
)

// TestMain makes the test binary a server too: as a child process it plays the role that its first
// argument names.
func TestMain(m *testing.M) {
	maps.Copy(roles, faults)
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		roles[os.Args[1]]()
		return
	}
	goleak.VerifyTestMain(m)
}

// roles are the parts that child processes play.
var roles = map[string]func(){
	"serve": func() { _ = stdio.Serve(context.Background(), echo("child")) },
	"exit":  func() { fmt.Fprintln(os.Stderr, "no such database"); os.Exit(3) },
}

// child returns a command that runs a role.
func child(role string) stdio.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return stdio.Command{Path: self, Args: []string{role}}
}

// echo returns a server with a tool and a prompt.
func echo(name string) *server.Server {
	s := server.New(name, "1", nil)
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
	server.Prompt(s, "greet", "Greets.", func(context.Context, struct{}) (string, error) { return "hello", nil })
	return s
}

func start(t *testing.T, opts hub.Options, definitions ...hub.Definition) *hub.Hub {
	t.Helper()
	h := hub.New(&opts)
	t.Cleanup(func() { h.Close() })
	h.Apply(definitions, "the test begins")
	return h
}

func settled(t testing.TB, h *hub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !h.Settle(ctx) {
		for _, u := range h.Upstreams() {
			t.Log(u.Name(), u.State().Status, u.State().Err)
		}
		t.Fatal("not settled")
	}
}

func wires(items []*catalog.Item[*hub.Upstream]) (names []string) {
	for _, item := range items {
		names = append(names, item.WireName)
	}
	return names
}

// stderrOf returns the lines of stderr in an upstream's history.
func stderrOf(u *hub.Upstream) (lines []string) {
	for _, e := range u.History() {
		if e.Kind == hub.StderrWritten {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

// until polls until a condition is true. It fails the test after [polltest.Limit].
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	polltest.Until(t, what, done)
}

func call(t *testing.T, u *hub.Upstream, text string) (string, error) {
	t.Helper()
	resp, err := u.RoundTrip(t.Context(), hub.Caller{}, &mcp.Request{
		Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":"echo","arguments":{"Text":%q}}`, text),
	})
	if err != nil {
		return "", err
	}
	return string(resp.Raw), nil
}

func TestUpstreams(t *testing.T) {
	h := start(t, hub.Options{MinBackoff: time.Minute}, // a failed one stays failed
		hub.Definition{Name: "one", Target: echo("first")},
		hub.Definition{Name: "two", Target: child("serve")},
		hub.Definition{Name: "gone", Target: child("exit")},
		hub.Definition{Name: "absent", Target: []string{"no-such-program-anywhere"}},
		hub.Definition{Name: "off", Target: child("exit"), Hold: hub.Hold{Status: hub.Disabled, Reason: "switched off"}},
	)
	settled(t, h)
	c := h.Catalog()
	if got := wires(c.Items(catalog.Tool)); !slices.Equal(got, []string{"one__echo", "two__echo"}) {
		t.Errorf("tools: %v", got)
	}
	if got := wires(c.Items(catalog.Prompt)); !slices.Equal(got, []string{"one__greet", "two__greet"}) {
		t.Errorf("prompts: %v", got)
	}
	var missing []string
	for _, m := range c.Missing() {
		missing = append(missing, m.Upstream+" "+m.State.Status.String())
	}
	if !slices.Equal(missing, []string{"gone failed", "absent failed"}) {
		t.Errorf("missing: %v", missing)
	}
	if got, err := call(t, h.Upstream("two"), "hi"); err != nil || !strings.Contains(got, "hi") {
		t.Errorf("%s, %v", got, err)
	}
	_, err := call(t, h.Upstream("off"), "hi")
	var down *hub.DownError
	if !errors.As(err, &down) || err.Error() != "the server off is disabled: switched off" {
		t.Errorf("calling what is disabled: %v", err)
	}
	if lines := stderrOf(h.Upstream("gone")); !slices.Contains(lines, "no such database") {
		t.Errorf("stderr: %q", lines)
	}
	if info := h.Upstream("one").Server(); info.Info.Name != "first" || info.Revision != mcp.LatestRevision {
		t.Errorf("%+v", info)
	}
}

// Apply restarts exactly the servers with a changed fingerprint.
func TestApply(t *testing.T) {
	h := start(t, hub.Options{},
		hub.Definition{Name: "same", Target: echo("a"), Fingerprint: "1"},
		hub.Definition{Name: "changed", Target: echo("b"), Fingerprint: "1"},
		hub.Definition{Name: "removed", Target: echo("c"), Fingerprint: "1"},
	)
	settled(t, h)
	since := h.Upstream("same").State().Since
	ctx, cancel := context.WithCancel(t.Context())
	events := h.Events(ctx)
	h.Apply([]hub.Definition{
		{Name: "new", Target: echo("d"), Fingerprint: "1"},
		{Name: "changed", Target: echo("b2"), Fingerprint: "2"},
		{Name: "same", Target: echo("a2"), Fingerprint: "1", Policy: hub.Policy{Tools: hub.ToolRules{Rename: map[string]string{"echo": "say"}}}},
	}, "the file changed")
	settled(t, h)
	until(t, "it is removed", func() bool { return h.Upstream("removed") == nil })
	if got := h.Upstream("changed").Server().Info.Name; got != "b2" {
		until(t, "the changed one is started again", func() bool { return h.Upstream("changed").Server().Info.Name == "b2" })
	}
	if s := h.Upstream("same"); s.State().Since != since || s.Server().Info.Name != "a" {
		t.Error("a server was restarted that has not changed")
	}
	if got := wires(h.Catalog().Items(catalog.Tool)); !slices.Equal(got, []string{"new__echo", "changed__echo", "same__say"}) {
		t.Errorf("%v", got)
	}
	cancel()
	for e := range events {
		t.Errorf("an event after the end: %v", e)
	}
}

// A server that dies is started again. Calls in the meantime wait for it.
func TestRestarts(t *testing.T) {
	h := start(t, hub.Options{MinBackoff: 10 * time.Millisecond}, hub.Definition{Name: "child", Target: child("serve")})
	settled(t, h)
	u := h.Upstream("child")
	for range 3 {
		since := u.State().Since
		u.Restart("the test wants it")
		until(t, "it is ready again", func() bool { s := u.State(); return s.Status == hub.Ready && s.Since != since })
		if _, err := call(t, u, "hi"); err != nil {
			t.Fatal(err)
		}
	}
}

// The instructions of a server are known before it is started again.
func TestInstructionsAreRemembered(t *testing.T) {
	cache := memoryCache{}
	s := server.New("s", "1", &server.Options{Instructions: "Ask twice."})
	defer s.Close()
	d := hub.Definition{Name: "lazy", Target: s, Fingerprint: "1", Policy: hub.Policy{Lazy: true}}
	h := start(t, hub.Options{Cache: cache}, d)
	settled(t, h)
	if got := h.Upstream("lazy").Instructions(); got != "Ask twice." {
		t.Errorf("while it runs: %q", got)
	}
	h.Close()
	h = start(t, hub.Options{Cache: cache}, d)
	if s := h.Upstream("lazy").State(); s.Status != hub.Stopped {
		t.Fatalf("%+v", s)
	}
	if got := h.Upstream("lazy").Instructions(); got != "Ask twice." {
		t.Errorf("before it is started: %q", got)
	}
}

// A server stops after IdleStop, keeps its items in the catalog, and starts again with a call; a
// later run knows them before it starts the server.
func TestLazyAndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := memoryCache{}
		d := hub.Definition{Name: "lazy", Target: echo("lazy"), Fingerprint: "1", Policy: hub.Policy{Lazy: true, IdleStop: 10 * time.Minute}}
		run := func(first bool) {
			h := hub.New(&hub.Options{Cache: cache})
			defer h.Close()
			h.Apply([]hub.Definition{d}, "the test begins")
			u := h.Upstream("lazy")
			if first {
				settled(t, h)
				if s := u.State(); s.Status != hub.Ready {
					t.Errorf("without lists of an earlier run: %+v", s)
				}
				time.Sleep(20 * time.Minute)
			}
			if s := u.State(); s.Status != hub.Stopped {
				t.Errorf("%+v", s)
			}
			if got := wires(h.Catalog().Items(catalog.Tool)); !slices.Equal(got, []string{"lazy__echo"}) {
				t.Errorf("%v", got)
			}
			if _, err := call(t, u, "hi"); err != nil {
				t.Error(err)
			}
		}
		run(true)
		run(false)
	})
}

type memoryCache map[string][]byte

func (c memoryCache) Load(name, fingerprint string) ([]byte, bool) {
	raw, ok := c[name+fingerprint]
	return raw, ok
}

func (c memoryCache) Save(name, fingerprint string, raw []byte) { c[name+fingerprint] = raw }

// The catalog follows the list changes that a server announces.
func TestFollows(t *testing.T) {
	s := echo("s")
	h := start(t, hub.Options{}, hub.Definition{Name: "s", Target: s})
	settled(t, h)
	server.Tool(s, "more", "More.", func(context.Context, struct{}) (string, error) { return "", nil })
	until(t, "the new tool is there", func() bool {
		return slices.Equal(wires(h.Catalog().Items(catalog.Tool)), []string{"s__echo", "s__more"})
	})
}

// A definition may change at any moment, also while the server announces changes.
func TestRedefinedWhileItChanges(t *testing.T) {
	s := echo("s")
	h := start(t, hub.Options{}, hub.Definition{Name: "s", Target: s, Fingerprint: "0"})
	settled(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("tool%d", i%50)
			if i < 50 {
				server.Tool(s, name, "", func(context.Context, struct{}) (string, error) { return "", nil })
			} else {
				s.Remove(server.KindTool, name)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for i := 1; ctx.Err() == nil; i++ {
		h.Apply([]hub.Definition{{Name: "s", Target: s, Fingerprint: fmt.Sprint(i)}}, "it changed")
		time.Sleep(3 * time.Millisecond)
	}
	<-done
	settled(t, h)
	if _, err := call(t, h.Upstream("s"), "hi"); err != nil {
		t.Error(err)
	}
}

// Two tools never get the same name.
func TestRenamedOntoAnother(t *testing.T) {
	s := server.New("s", "1", nil)
	for _, name := range []string{"a", "b"} {
		server.Tool(s, name, "", func(context.Context, struct{}) (string, error) { return name, nil })
	}
	h := start(t, hub.Options{}, hub.Definition{Name: "s", Target: s, Policy: hub.Policy{Tools: hub.ToolRules{Rename: map[string]string{"a": "b"}}}})
	settled(t, h)
	if got := wires(h.Catalog().Items(catalog.Tool)); !slices.Equal(got, []string{"s__b"}) {
		t.Errorf("%v", got)
	}
	if q := h.Upstream("s").Quarantined(); len(q) != 1 || !strings.Contains(q[0].Reason, "another one has that name") {
		t.Errorf("%+v", q)
	}
}

// Servers learn in both eras who calls, and that questions are possible.
func TestIdentity(t *testing.T) {
	for _, tt := range []struct {
		info mcp.Implementation
		want string
	}{{mcp.Implementation{}, "dowel"}, {mcp.Implementation{Name: "joiner", Version: "7"}, "joiner"}} {
		for _, revision := range []mcp.Revision{mcp.LatestLegacyRevision, mcp.LatestRevision} {
			requests := make(chan *mcp.Request, 1)
			s := mcp.Chain(echo("s"), before(mcp.MethodListTools, func(req *mcp.Request) *mcp.Result { requests <- req; return nil }))
			h := start(t, hub.Options{Info: tt.info, Logger: quiet}, hub.Definition{Name: "s", Target: s, Options: client.Options{Wire: client.Wire{Revision: revision}}})
			settled(t, h)
			req := <-requests
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
