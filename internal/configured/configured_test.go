package configured_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/watch"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// choices keeps decisions in memory.
type choices struct {
	mu     sync.Mutex
	on     map[string]bool
	agreed map[string]config.Agreement
}

func (c *choices) Enabled(server string) (on, decided bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	on, decided = c.on[server]
	return on, decided
}

func (c *choices) SetEnabled(server string, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on[server] = on
	return nil
}

func (c *choices) Trusted(file, server string) (a config.Agreement, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok = c.agreed[file+server]
	return a, ok
}

func (c *choices) Trust(file, server string, a config.Agreement) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agreed[file+server] = a
	return nil
}

func (c *choices) TrustKey() ([]byte, error) { return []byte("key"), nil }

func (c *choices) DefinitionLog(_, _ string) client.DefinitionLog { return nil }

func newChoices() *choices {
	return &choices{on: map[string]bool{}, agreed: map[string]config.Agreement{}}
}

// fixture is a user's home and a project.
type fixture struct {
	t             *testing.T
	home, project string
	hub           *hub.Hub
	options       configured.Options
	source        *configured.Source
}

func newFixture(t *testing.T, fallback ...hub.Definition) *fixture {
	t.Helper()
	w := &fixture{t: t, home: t.TempDir(), project: t.TempDir(), hub: hub.New(nil)}
	t.Cleanup(func() { w.hub.Close() })
	w.options = configured.Options{
		Config:   config.Options{Home: w.home, Project: w.project, GOOS: "linux", Env: func(string) (string, bool) { return "", false }},
		Choices:  newChoices(),
		Fallback: fallback,
	}
	w.renewSource()
	return w
}

// renewSource replaces the source by one with the present options.
func (w *fixture) renewSource() { w.source = configured.New(w.hub, w.options) }

// followChanges loads the files again as they change, until the test ends, and sends on the channel
// after each time.
func (w *fixture) followChanges() <-chan struct{} {
	ctx, cancel := context.WithCancel(w.t.Context())
	loaded, done := make(chan struct{}, 1000), make(chan struct{})
	go func() {
		defer close(done)
		for range w.source.Changes(ctx, watch.Options{Quiet: 20 * time.Millisecond}) {
			loaded <- struct{}{}
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	return loaded
}

func (w *fixture) user(text string) {
	w.write(filepath.Join(w.home, ".config", "dowel", "dowel.json"), text)
}
func (w *fixture) projectFile(text string) { w.write(filepath.Join(w.project, "dowel.json"), text) }

func (w *fixture) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// trust agrees to a server of the project as it is now.
func (w *fixture) trust(source *configured.Source, name string, folder bool) {
	w.t.Helper()
	for _, u := range source.Project() {
		if u.Name == name {
			if err := source.Trust(u, folder); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.t.Fatalf("the project has no server %s", name)
}

// expect waits for the states of all servers, each in the form "name status".
func (w *fixture) expect(want ...string) {
	w.t.Helper()
	polltest.UntilNil(w.t, func() error {
		if states := w.states(); states != strings.Join(want, ", ") {
			return fmt.Errorf("the servers are %q, want %q", states, want)
		}
		return nil
	})
}

func (w *fixture) states() string {
	var got []string
	for _, u := range w.hub.Upstreams() {
		s := u.State()
		status := s.Status.String()
		if s.Status == hub.Starting || s.Status == hub.Failed {
			status = "started"
		}
		got = append(got, u.Name()+" "+status)
	}
	return strings.Join(got, ", ")
}

func (w *fixture) reason(name string) string { return w.hub.Upstream(name).State().Cause }

const nothing = `"command": "no-such-program-anywhere"`

func TestLoad(t *testing.T) {
	w := newFixture(t, hub.Definition{Name: "fallback", Target: everything.New()})
	w.source.Load("begin")
	w.hub.Settle(t.Context())
	w.expect("fallback ready")
	w.user(`{"mcpServers": {
		"one": {` + nothing + `}, "off": {` + nothing + `, "disabled": true}, "bad": {"comand": "x"},
		"unset": {` + nothing + `, "env": {"TOKEN": "${TOKEN}"}}}}`)
	w.source.Load("the file appeared")
	w.expect("one started", "off disabled", "bad needs configuration", "unset needs configuration")
	for name, part := range map[string]string{"bad": "comand", "unset": "TOKEN", "off": "dowel.json:2:"} {
		if why := w.reason(name); !strings.Contains(why, part) || !strings.Contains(why, "dowel.json:") {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// A project's servers wait for trust, and again when they change.
func TestTrust(t *testing.T) {
	w := newFixture(t)
	w.projectFile(`{"mcpServers": {"p": {` + nothing + `, "args": ["1"]}}}`)
	w.user(`{"mcpServers": {"p": {"command": "shadowed"}, "u": {` + nothing + `}}}`)
	w.source.Load("begin")
	w.expect("p needs trust", "u started")
	waiting := w.source.Untrusted()
	if len(waiting) != 1 || waiting[0].Name != "p" || len(waiting[0].Facts.Lines()) == 0 || waiting[0].Changes != nil {
		t.Fatalf("%+v", waiting)
	}
	w.projectFile(`{"mcpServers": {"p": {` + nothing + `, "args": ["0"]}}}`)
	if err := w.source.Trust(waiting[0], false); err == nil || !strings.Contains(err.Error(), "+ args 0") {
		t.Errorf("a server that was not shown is trusted: %v", err)
	}
	w.projectFile(`{"mcpServers": {"p": {` + nothing + `, "args": ["1"]}}}`)
	if err := w.source.Trust(waiting[0], false); err != nil {
		t.Error(err)
	}
	w.expect("p started", "u started")
	w.projectFile(`{"mcpServers": {"p": {` + nothing + `, "args": ["2"]}}}`)
	w.source.Load("the file changed")
	w.expect("p needs trust", "u started")
	if why := w.reason("p"); !strings.Contains(why, "- args 1, + args 2") {
		t.Error(why)
	}
}

// Without a hub, trust is stored for the next reader, and nothing is started.
func TestTrustWithoutHub(t *testing.T) {
	w := newFixture(t)
	w.projectFile(`{"mcpServers": {"p": {` + nothing + `}}}`)
	source := configured.New(nil, w.options)
	for _, want := range []hub.Status{hub.NeedsTrust, 0} {
		all := source.Look()
		if len(all) != 1 || all[0].Hold.Status != want {
			t.Fatalf("the definitions are %+v, want one of status %v", all, want)
		}
		for _, u := range source.Untrusted() {
			if err := source.Trust(u, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, ok := source.UserLogin(t.Context(), "p"); ok {
		t.Error("a user can log in at a server that is not running")
	}
}

// A broken file keeps its servers running, and the servers that it shadows stay shadowed.
func TestBrokenFile(t *testing.T) {
	w := newFixture(t)
	w.user(`{"mcpServers": {"u": {` + nothing + `}, "v": {` + nothing + `}}}`)
	w.source.Load("begin")
	w.expect("u started", "v started")
	since := w.hub.Upstream("u")
	w.user(`{"mcpServers": {"u": `)
	set := w.source.Load("the file changed")
	w.expect("u started", "v started")
	if w.hub.Upstream("u") != since || len(set.Problems) == 0 {
		t.Error("what ran was ended, or nothing was said", set.Problems)
	}
	w.user(`{"mcpServers": {"v": {` + nothing + `}}}`)
	w.source.Load("the file changed")
	w.expect("v started")
}

func TestEnable(t *testing.T) {
	w := newFixture(t)
	w.user(`{"mcpServers": {"u": {` + nothing + `}, "off": {` + nothing + `, "disabled": true}}}`)
	w.source.Load("begin")
	for _, c := range []struct {
		name string
		on   bool
	}{{"u", false}, {"off", true}} {
		if err := w.source.Enable(c.name, c.on); err != nil {
			t.Error(err)
		}
	}
	w.expect("u disabled", "off started")
	if err := w.source.Enable("none", true); err == nil {
		t.Error("a server is enabled that there is not")
	}
}

// The shown target of a held server contains no secret of its entry.
func TestHeldServersKeepSecrets(t *testing.T) {
	w := newFixture(t)
	w.user(`{"mcpServers": {
		"off": {"command": "x", "args": ["--api-key", "sk-verysecret123"], "disabled": true},
		"url": {"url": "https://u:pw12345678@h/mcp?token=tok98765432", "disabled": true}}}`)
	w.source.Load("begin")
	for _, u := range w.hub.Upstreams() {
		if origin := u.Definition().Origin; strings.Contains(origin, "secret") || strings.Contains(origin, "pw1234") || strings.Contains(origin, "tok9876") || origin == "" {
			t.Errorf("%s: %s", u.Name(), origin)
		}
	}
}
