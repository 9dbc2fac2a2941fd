package configured_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/config/watch"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// fingerprint returns the fingerprint of a server's definition.
func (w *fixture) fingerprint(name string) string {
	u := w.hub.Upstream(name)
	if u == nil {
		return ""
	}
	return u.Definition().Fingerprint
}

// awaitChange waits until a server has another fingerprint than before. reason is for the failure.
func (w *fixture) awaitChange(name, before, reason string) {
	w.t.Helper()
	polltest.Until(w.t, reason+": a change of "+name, func() bool { return w.fingerprint(name) != before })
}

// A change of a file restarts the servers defined by it and no others. The files are configuration
// files, env files, files of ${file:…}, and files of servers trusted later.
func TestChanges(t *testing.T) {
	w := newFixture(t)
	env, token, cert := filepath.Join(w.home, ".env"), filepath.Join(w.home, "token"), filepath.Join(w.home, "cert")
	w.user(`{"mcpServers": {
		"env": {` + nothing + `, "envFile": "` + env + `"}, "token": {` + nothing + `, "env": {"T": "${file:` + token + `}"}}, "other": {` + nothing + `}}}`)
	w.projectFile(`{"mcpServers": {"theirs": {` + nothing + `, "env": {"C": "${file:` + cert + `}"}}}}`)
	w.write(token, "one")
	w.write(cert, "one")
	w.source.Load("begin")
	w.expect("theirs needs trust", "env needs configuration", "token started", "other started")
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() {
		for range w.source.Changes(ctx, watch.Options{Quiet: 20 * time.Millisecond}) {
		}
	})
	defer listening.Wait()
	defer cancel()
	other := w.fingerprint("other")
	was := w.fingerprint("token")

	w.write(token, "two")
	w.awaitChange("token", was, "its token has changed")
	w.write(env, "A=1")
	w.expect("theirs needs trust", "env started", "token started", "other started")
	was = w.fingerprint("env")
	w.write(env, "A=2")
	w.awaitChange("env", was, "its environment has changed")
	w.trust(w.source, "theirs", false)
	was = w.fingerprint("theirs")
	w.write(cert, "two")
	w.awaitChange("theirs", was, "its certificate has changed")
	if err := os.Remove(env); err != nil {
		t.Fatal(err)
	}
	w.expect("theirs started", "env needs configuration", "token started", "other started")
	w.user(`{"mcpServers": {"other": {` + nothing + `}}}`)
	w.expect("theirs started", "other started")
	if w.fingerprint("other") != other {
		t.Error("a server has changed although its files have not")
	}
}

// awaitLoad waits until the files have been loaded after a change. It gives up after 3 seconds
// without failing the test, because a busy machine may load two changes at once.
func awaitLoad(loaded <-chan struct{}) {
	select {
	case <-loaded:
	case <-time.After(3 * time.Second):
	}
}

// A file that is missing or empty for less than the grace does not affect its server.
func TestFilesOfAMoment(t *testing.T) {
	w, url := newFixture(t), served(t)
	w.options.MissingGrace = time.Hour
	w.renewSource()
	token := filepath.Join(w.home, "token")
	w.write(token, "1")
	w.user(`{"mcpServers": {"a": {"url": "` + url + `?t=${file:` + token + `}"}}}`)
	w.source.Load("begin")
	loaded := w.followChanges()
	w.expect("a ready")
	since, was := w.since()["a"], w.fingerprint("a")
	for range 3 {
		if err := os.Remove(token); err != nil {
			t.Fatal(err)
		}
		awaitLoad(loaded)
		w.write(token, "")
		awaitLoad(loaded)
		w.write(token, "1")
		awaitLoad(loaded)
	}
	if w.expect("a ready"); w.since()["a"] != since {
		t.Error("it was restarted")
	}
	w.write(token, "2")
	w.awaitChange("a", was, "its token has changed")
}

// The definition of a server does not outlive its file for longer than the grace.
func TestFileThatStaysMissing(t *testing.T) {
	w, url := newFixture(t), served(t)
	w.options.MissingGrace = time.Millisecond
	w.renewSource()
	token := filepath.Join(w.home, "token")
	w.write(token, "1")
	w.user(`{"mcpServers": {"a": {"url": "` + url + `?t=${file:` + token + `}"}}}`)
	w.source.Load("begin")
	w.followChanges()
	w.expect("a ready")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	w.expect("a needs configuration")
}
