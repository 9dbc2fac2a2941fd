package hub_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// fakeFiles are files that change when a test calls change. The method watch is for
// [hub.Options].Watch.
type fakeFiles struct {
	mu      sync.Mutex
	watches map[*fakeWatch]bool
}

type fakeWatch struct {
	paths   []string
	changed func(cause string)
}

func (f *fakeFiles) watch(paths []string, changed func(cause string), _ func(error)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watches == nil {
		f.watches = map[*fakeWatch]bool{}
	}
	w := &fakeWatch{paths, changed}
	f.watches[w] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, w)
	}
}

// watching returns the watches of a path.
func (f *fakeFiles) watching(path string) (all []*fakeWatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		if slices.Contains(w.paths, path) {
			all = append(all, w)
		}
	}
	return all
}

// change reports a change of a path, and fails the test if the path is not watched.
func (f *fakeFiles) change(t *testing.T, path string) {
	t.Helper()
	watches := f.watching(path)
	if len(watches) == 0 {
		t.Errorf("%s is not watched", path)
	}
	for _, w := range watches {
		w.changed(filepath.Base(path) + " was modified")
	}
}

// watched is a definition of an echo server that restarts when the path changes.
func watched(name, path string) hub.Definition {
	return hub.Definition{Name: name, Target: echo(name), Fingerprint: "1", Policy: hub.Policy{WatchPaths: []string{path}}}
}

// expectRestart calls change and waits until the server is ready again.
func expectRestart(t *testing.T, u *hub.Upstream, change func()) {
	t.Helper()
	since := u.State().Since
	change()
	until(t, "the server restarts", func() bool {
		s := u.State()
		return s.Status == hub.Ready && s.Since != since
	})
}

// A change of a watched file restarts its server, and no other one. A redefinition keeps the watch.
func TestWatchPaths(t *testing.T) {
	files := new(fakeFiles)
	h := start(t, hub.Options{Watch: files.watch, Logger: quiet}, watched("a", "a.js"), watched("b", "b.js"))
	settled(t, h)
	sameServer, newServer := watched("a", "a.js"), watched("b", "b.js")
	sameServer.Tools.Hide = []string{"none"}
	newServer.Fingerprint = "2"
	h.Apply([]hub.Definition{sameServer, newServer, {Name: "c", Target: echo("c")}}, "the file changed")
	settled(t, h)
	since := h.Upstream("b").State().Since
	expectRestart(t, h.Upstream("a"), func() { files.change(t, "a.js") })
	if h.Upstream("b").State().Since != since {
		t.Error("a file of a has restarted b")
	}
	expectRestart(t, h.Upstream("b"), func() { files.change(t, "b.js") })
	h.Close()
	if len(files.watches) > 0 {
		t.Errorf("%d watches outlive the hub", len(files.watches))
	}
}

// A held server is not started by its files, and they are not watched.
func TestWatchPathsOfHeld(t *testing.T) {
	files := new(fakeFiles)
	h := start(t, hub.Options{Watch: files.watch, Logger: quiet}, watched("a", "a.js"))
	settled(t, h)
	before := files.watching("a.js")
	held := watched("a", "a.js")
	held.Hold = hub.Hold{Status: hub.Disabled, Reason: "switched off"}
	h.Apply([]hub.Definition{held}, "switched off")
	before[0].changed("a.js was modified") // a late report of the ended watch
	until(t, "the watch ends", func() bool { return len(files.watching("a.js")) == 0 })
	if s := h.Upstream("a").State(); s.Status != hub.Disabled {
		t.Errorf("a file has started a disabled server: %+v", s)
	}
}

// A change of a file starts a failed server again at once.
func TestWatchPathsOfFailed(t *testing.T) {
	files, down := new(fakeFiles), new(atomic.Bool)
	down.Store(true)
	d := watched("dev", "code.js")
	d.Target = unreliable{memory.Dialer(echo("dev")), down}
	h := start(t, hub.Options{MinBackoff: time.Hour, Watch: files.watch, Logger: quiet}, d)
	settled(t, h)
	down.Store(false)
	files.change(t, "code.js")
	until(t, "it is started again", func() bool { return h.Upstream("dev").State().Status == hub.Ready })
}

// A change while the server starts restarts it afterwards.
func TestWatchPathsWhileStarting(t *testing.T) {
	files := new(fakeFiles)
	started, resume, first := make(chan struct{}), make(chan struct{}), new(atomic.Bool)
	d := watched("dev", "code.js")
	d.Target = mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if !first.Swap(true) {
			close(started)
			<-resume
		}
		return echo("x").ServeMCP(ctx, req)
	})
	h := start(t, hub.Options{Watch: files.watch, Logger: quiet}, d)
	events := h.Events(t.Context(), hub.StateChanged)
	<-started
	files.change(t, "code.js")
	close(resume)
	for e := range events {
		if e.State.Cause == "code.js was modified" {
			return
		}
	}
}

// A server that writes a watched file whenever it starts is restarted once, not forever.
func TestWatchPathsThatTheStartWrites(t *testing.T) {
	files := new(fakeFiles)
	var starts atomic.Int32
	d := watched("dev", "out.js")
	d.Target = mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			starts.Add(1)
			files.change(t, "out.js")
		}
		return echo("x").ServeMCP(ctx, req)
	})
	h := start(t, hub.Options{Watch: files.watch, Logger: quiet}, d)
	settled(t, h) // whether to restart is decided before the state is Ready
	if n := starts.Load(); n != 2 {
		t.Errorf("%d starts", n)
	}
}
