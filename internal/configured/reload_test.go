package configured_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// served returns the URL of a server. Every query of it is the same server.
func served(t *testing.T) string {
	t.Helper()
	s := everything.New()
	h := streamable.Handler(s, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(slog.DiscardHandler)}})
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = h.Shutdown(ctx)
		web.Close()
		s.Close()
	})
	return web.URL + "/mcp"
}

// since returns when each server entered its state.
func (w *fixture) since() map[string]time.Time {
	all := map[string]time.Time{}
	for _, u := range w.hub.Upstreams() {
		all[u.Name()] = u.State().Since
	}
	return all
}

// A reload ends removed servers, starts new ones, restarts changed ones, and leaves the others
// running.
func TestReload(t *testing.T) {
	w, url := newFixture(t), served(t)
	before := map[string]time.Time{}
	for _, step := range []struct{ name, text, want, restarted string }{
		{"begin", `{"mcpServers": {"a": {"url": "URL?a"}, "b": {"url": "URL?b"}, "c": {"url": "URL?c"}}}`, "a ready, b ready, c ready", "a b c"},
		{"other words", `// mine
			{"x-mine": 1, "mcpServers": {"a": {"type": "remote", "url": "URL?a", "description": "x"}, // a
				"b": {"url": "URL${NOT_SET:-?b}",},
				"c": {"headers": {}, "url": "URL?c"}}}`, "a ready, b ready, c ready", ""},
		{"what applies to running servers", `{"mcpServers": {
			"a": {"url": "URL?a", "timeout": "1m", "idleTimeout": "1s", "startTimeout": "9s"}, "b": {"url": "URL?b", "disabledTools": ["echo"], "alwaysAllow": ["*"]},
			"c": {"url": "URL?c", "tools": {"rename": {"echo": "say"}}, "required": true, "idleStop": "1h"}}}`, "a ready, b ready, c ready", ""},
		{"changes", `{"mcpServers": {"a": {"url": "URL?a"}, "b": {"url": "URL?b", "headers": {"X": "y"}}, "d": {"url": "URL?d"}}}`, "a ready, b ready, d ready", "b d"},
		{"broken", `{"mcpServers": {"a": {"url": "URL?changed"}, "d": `, "a ready, b ready, d ready", ""},
		{"a list", `[]`, "a ready, b ready, d ready", ""},
		{"mended", `{"mcpServers": {"a": {"url": "URL?a"}, "b": {"url": "URL?b", "headers": {"X": "y"}}, "d": {"url": "URL?d"}}}`, "a ready, b ready, d ready", ""},
		{"another order", `{"mcpServers": {"d": {"url": "URL?d"}, "b": {"url": "URL?b", "headers": {"X": "y"}}, "a": {"url": "URL?a"}}}`, "d ready, b ready, a ready", ""},
		{"a wrong one among them", `{"mcpServers": {"d": {"url": "URL?d"}, "n": {"comand": "x"}, "a": {"url": "URL?a"}}}`, "d ready, n needs configuration, a ready", "n"},
		{"put right", `{"mcpServers": {"d": {"url": "URL?d"}, "n": {"url": "URL?n"}, "a": {"url": "URL?a"}}}`, "d ready, n ready, a ready", "n"},
		{"off", `{"mcpServers": {"d": {"url": "URL?d", "disabled": true}, "a": {"url": "URL?a"}}}`, "d disabled, a ready", "d"},
		{"nothing", ``, "", ""},
		{"back", `{"mcpServers": {"a": {"url": "URL?a"}}}`, "a ready", "a"},
	} {
		w.user(strings.ReplaceAll(step.text, "URL", url))
		set := w.source.Load(step.name)
		w.hub.Settle(t.Context())
		if w.states() != step.want {
			t.Errorf("%s: the servers are %q, want %q", step.name, w.states(), step.want)
		}
		now := w.since()
		for name, since := range now {
			if restarted := before[name] != since; restarted != strings.Contains(step.restarted, name) {
				t.Errorf("%s: %s was restarted: %t", step.name, name, restarted)
			}
		}
		before = now
		if broken := step.name == "broken" || step.name == "a list"; broken != slices.ContainsFunc(set.Files, func(f config.File) bool { return f.Broken }) || broken && set.Problems[0].Line != 1 {
			t.Errorf("%s: %v", step.name, set.Problems)
		}
	}
	if err := os.Remove(filepath.Join(w.home, ".config", "dowel", "dowel.json")); err != nil {
		t.Fatal(err)
	}
	w.source.Load("it was removed")
	w.expect()
}

// The servers of the project come first, in the order of its files, then the user's. Of two with
// one name only one runs.
func TestOrderAndPrecedence(t *testing.T) {
	w, url := newFixture(t), served(t)
	entry := func(name, query string) string { return fmt.Sprintf(`%q: {"url": "%s?%s"}`, name, url, query) }
	w.projectFile(`{"mcpServers": {` + entry("z", "1") + `, ` + entry("both", "project") + `}}`)
	w.write(filepath.Join(w.project, ".mcp.json"), `{"mcpServers": {`+entry("m", "1")+`, `+entry("both", "portable")+`}}`)
	w.user(`{"mcpServers": {` + entry("y", "1") + `, ` + entry("both", "user") + `, ` + entry("b", "1") + `}}`)
	w.source.Load("begin")
	for _, name := range []string{"z", "both", "m"} {
		w.trust(w.source, name, false)
	}
	w.expect("z ready", "both ready", "m ready", "y ready", "b ready")
	origin := func() string { return w.hub.Upstream("both").Definition().Origin }
	if !strings.HasSuffix(origin(), "?project") || len(w.source.Set().Shadowed) != 2 {
		t.Errorf("%s runs, and shadowed are %v", origin(), w.source.Set().Shadowed)
	}
	if err := os.Remove(filepath.Join(w.project, "dowel.json")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	removals := w.hub.Events(ctx, hub.StateChanged)
	w.source.Load("dowel.json was removed")
	w.expect("m ready", "both needs trust", "y ready", "b ready") // another entry becomes effective
	for e := range removals {
		if e.State.Status == hub.Removed {
			if e.Upstream != "z" || e.State.Cause != "dowel.json was removed" {
				t.Errorf("%+v", e)
			}
			break
		}
	}
	if ctx.Err() != nil {
		t.Error("nobody is told that a server has gone")
	}
	if err := os.Remove(filepath.Join(w.project, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	w.source.Load(".mcp.json was removed")
	w.expect("y ready", "both ready", "b ready")
	if !strings.HasSuffix(origin(), "?user") {
		t.Errorf("%s runs", origin())
	}
}

// Entries keep their variables, definitions have the values, and only a changed value restarts a
// server.
func TestVariables(t *testing.T) {
	w, url := newFixture(t), served(t)
	token := "first-secret"
	w.source = configured.New(w.hub, configured.Options{
		Config: config.Options{Home: w.home, Project: w.project, GOOS: "linux", Env: func(name string) (string, bool) {
			return token, name == "TOKEN" && token != ""
		}},
		Choices: newChoices(),
	})
	text := `{"mcpServers": {"a": {"url": "` + url + `?key=${env:TOKEN}", "headers": {"X-Token": "${TOKEN}"}}}}`
	w.user(text)
	w.source.Load("begin")
	w.expect("a ready")
	since := w.since()["a"]
	for i := range 3 {
		w.user(text + strings.Repeat("\n", i))
		w.source.Load("it was saved")
	}
	if w.expect("a ready"); w.since()["a"] != since {
		t.Error("a file that was saved restarts a server with variables")
	}
	if s := w.source.Set().Server("a"); s.Headers["X-Token"] != "${TOKEN}" || strings.Contains(fmt.Sprintf("%+v", s.Spec), "secret") {
		t.Errorf("%+v", s.Spec)
	}
	if origin := w.hub.Upstream("a").Definition().Origin; strings.Contains(origin, "secret") {
		t.Error(origin)
	}
	token = "second-secret"
	w.source.Load("it was asked for")
	w.expect("a ready")
	if w.since()["a"] == since {
		t.Error("the variable says something else, and the server still runs with what it said before")
	}
	token = ""
	w.source.Load("it was asked for")
	if w.expect("a needs configuration"); !strings.Contains(w.reason("a"), "TOKEN is not set") {
		t.Error(w.reason("a"))
	}
}

// A switched server stays switched through changes of its entry.
func TestSwitches(t *testing.T) {
	w, url := newFixture(t), served(t)
	w.user(`{"mcpServers": {"a": {"url": "` + url + `"}, "b": {"url": "` + url + `", "disabled": true}}}`)
	w.source.Load("begin")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.expect("a ready", "b disabled")
	since := w.since()
	must(w.source.Enable("a", true))
	must(w.source.Enable("b", false))
	if w.expect("a ready", "b disabled"); w.since()["a"] != since["a"] {
		t.Error("what runs is switched on, and was restarted")
	}
	must(w.source.Enable("a", false))
	must(w.source.Enable("b", true))
	w.expect("a disabled", "b ready")
	if !strings.Contains(w.reason("a"), "switched off") {
		t.Error(w.reason("a"))
	}
	w.user(`{"mcpServers": {"a": {"url": "` + url + `?new", "disabled": false}, "b": {"url": "` + url + `", "disabled": true}}}`)
	w.source.Load("the file changed")
	w.expect("a disabled", "b ready")
	must(w.source.Enable("a", true))
	w.expect("a ready", "b ready")
	if got := w.hub.Upstream("a").Definition().Origin; !strings.HasSuffix(got, "?new") {
		t.Errorf("%s runs", got)
	}
}

// Loads may run at the same time.
func TestLoadsAtOnce(t *testing.T) {
	w, url := newFixture(t), served(t)
	w.user(`{"mcpServers": {"a": {"url": "` + url + `"}, "b": {"url": "` + url + `"}}}`)
	w.source.Load("begin")
	w.expect("a ready", "b ready")
	since := w.since()["a"]
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				w.source.Load("it was asked for")
				if i == 0 {
					if err := w.source.Enable("b", w.hub.Upstream("b").State().Status == hub.Disabled); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	w.source.Load("it was asked for")
	if err := w.source.Enable("b", true); err != nil {
		t.Error(err)
	}
	if w.expect("a ready", "b ready"); w.since()["a"] != since {
		t.Error("it was restarted for nothing")
	}
}

// Trust belongs to a file: the same text in another project needs new trust. The user's own servers
// keep running.
func TestAnotherProject(t *testing.T) {
	one, url := newFixture(t), served(t)
	kept := newChoices()
	text := `{"mcpServers": {"p": {"url": "` + url + `"}}}`
	one.user(`{"mcpServers": {"mine": {"url": "` + url + `"}}}`)
	at := func(w *fixture) *fixture {
		w.source = configured.New(w.hub, configured.Options{
			Config:  config.Options{Home: one.home, Project: w.project, GOOS: "linux", Env: func(string) (string, bool) { return "", false }},
			Choices: kept,
		})
		w.projectFile(text)
		w.source.Load("begin")
		return w
	}
	at(one).expect("p needs trust", "mine ready")
	one.trust(one.source, "p", false)
	one.expect("p ready", "mine ready")
	at(newFixture(t)).expect("p needs trust", "mine ready")
}

// An entry that becomes invalid keeps its server running with a note. Switching it off still ends
// it.
func TestEntryThatBecomesWrong(t *testing.T) {
	w, url := newFixture(t), served(t)
	w.user(`{"mcpServers": {"a": {"url": "` + url + `"}}}`)
	w.source.Load("begin")
	w.expect("a ready")
	since := w.since()["a"]
	for range 2 {
		w.user(`{"mcpServers": {"a": {"ulr": "` + url + `"}}}`)
		set := w.source.Load("the file changed")
		if w.expect("a ready"); w.since()["a"] != since || len(set.Problems) == 0 {
			t.Errorf("%v", set.Problems)
		}
		if note := w.hub.Upstream("a").Definition().Note; !strings.Contains(note, "the last valid one still runs") || !strings.Contains(note, "dowel.json:1:") {
			t.Errorf("%q", note)
		}
	}
	w.user(`{"mcpServers": {"a": {"url": "` + url + `"}}}`)
	w.source.Load("it is right again")
	if w.expect("a ready"); w.since()["a"] != since || w.hub.Upstream("a").Definition().Note != "" {
		t.Error("it was restarted, or is said to be wrong still")
	}
	w.user(`{"mcpServers": {"a": {"ulr": "` + url + `", "disabled": true}}}`)
	w.source.Load("it is off")
	w.expect("a disabled")
}

// A file with an empty server list prevents the fallback; a file without a server list does not.
func TestNoServersAreMeant(t *testing.T) {
	w := newFixture(t, hub.Definition{Name: "fallback", Target: everything.New()})
	w.user(`{"gateway": {"rateLimit": 5}}`)
	w.source.Load("begin")
	w.expect("fallback ready")
	w.user(`{"mcpServers": {}}`)
	w.source.Load("begin")
	w.expect()
}

// A server section of the wrong type keeps its servers running.
func TestSectionThatBecomesWrong(t *testing.T) {
	w, url := newFixture(t), served(t)
	w.user(`{"mcpServers": {"a": {"url": "` + url + `"}}}`)
	w.source.Load("begin")
	w.expect("a ready")
	for _, wrong := range []string{`5`, `"x"`, `true`} {
		w.user(`{"mcpServers": ` + wrong + `}`)
		if set := w.source.Load("the file changed"); w.states() != "a ready" || len(set.Problems) == 0 {
			t.Errorf("%s: %s, %v", wrong, w.states(), set.Problems)
		}
	}
}
