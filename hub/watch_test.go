package hub_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/memory"

	"github.com/dowel-mcp/dowel/hub"
)

// put writes a file.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// touched changes a file, again and again since it may not be watched yet, until the server has been restarted.
func touched(t *testing.T, path string, u *hub.Upstream) {
	t.Helper()
	since := u.State().Since
	last := time.Time{}
	until(t, "it is restarted", func() bool {
		if time.Since(last) > 2*time.Second { // longer than the watcher takes
			last = time.Now()
			put(t, path, last.String())
		}
		s := u.State()
		return s.Status == hub.Ready && s.Since != since
	})
}

// Definitions that change leave the watched files of those that do not; one that is held is started by no file.
func TestWatchPathsStay(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a.js"), filepath.Join(folder, "b.js")
	put(t, a, "1")
	put(t, b, "1")
	of := func(name, path string) hub.Definition {
		return hub.Definition{Name: name, Target: echo(name), Fingerprint: "1", WatchPaths: []string{path}}
	}
	h := start(t, hub.Options{Logger: quiet}, of("a", a), of("b", b))
	settled(t, h)
	ruled := of("a", a)
	ruled.Rules.Hide = []string{"none"}
	changed := of("b", b)
	changed.Fingerprint = "2"
	h.Apply([]hub.Definition{ruled, changed, {Name: "c", Target: echo("c")}}, "the file changed")
	settled(t, h)
	since := h.Upstream("b").State().Since
	touched(t, a, h.Upstream("a"))
	if h.Upstream("b").State().Since != since {
		t.Error("a server was restarted for the file of another")
	}
	held := hub.Definition{Name: "a", Hold: hub.Hold{Status: hub.Disabled, Reason: "switched off"}, WatchPaths: []string{a}}
	h.Apply([]hub.Definition{held, changed}, "switched off")
	until(t, "it is off", func() bool { return h.Upstream("a").State().Status == hub.Disabled })
	put(t, a, "nobody's")
	touched(t, b, h.Upstream("b")) // by then the other change has been seen
	if s := h.Upstream("a").State(); s.Status != hub.Disabled {
		t.Errorf("a file has started what is switched off: %+v", s)
	}
}

// A server that failed is tried again when its file is mended.
func TestWatchPathsOfFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "code.js")
	put(t, path, "bad")
	down := new(atomic.Bool)
	down.Store(true)
	d := hub.Definition{Name: "dev", Target: moody{memory.Dialer(echo("dev")), down}, WatchPaths: []string{path}}
	h := start(t, hub.Options{Base: time.Hour, Logger: quiet}, d)
	settled(t, h)
	down.Store(false)
	put(t, path, "good")
	until(t, "it is started again", func() bool { return h.Upstream("dev").State().Status == hub.Ready })
}

// What changes while the server starts is not missed.
func TestWatchPathsWhileStarting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "code.js")
	put(t, path, "1")
	begun, gate, first := make(chan struct{}), make(chan struct{}), new(atomic.Bool)
	slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if !first.Swap(true) {
			close(begun)
			<-gate
		}
		return echo("x").ServeMCP(ctx, req)
	})
	h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "dev", Target: slow, WatchPaths: []string{path}})
	events := h.Events(t.Context(), hub.StateChanged)
	<-begun
	put(t, path, "2")
	close(gate)
	for e := range events {
		if e.State.Cause == "code.js was modified" {
			return
		}
	}
}

// A server whose start writes what is watched is not restarted without end.
func TestWatchPathsThatTheStartWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.js")
	put(t, path, "0")
	var starts atomic.Int32
	build := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			put(t, path, fmt.Sprint("build ", starts.Add(1)))
			select {
			case <-time.After(500 * time.Millisecond): // longer than the watcher takes
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return echo("x").ServeMCP(ctx, req)
	})
	h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "dev", Target: build, WatchPaths: []string{path}})
	until(t, "it has come to rest", func() bool {
		s := h.Upstream("dev").State()
		return s.Status == hub.Ready && time.Since(s.Since) > time.Second
	})
	if n := starts.Load(); n > 2 {
		t.Errorf("%d starts", n)
	}
}
