package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// realWatcher is a watcher of real files with the system's notifications. The tests change files on
// the watcher's own goroutine, which therefore sees no intermediate state, however slow the machine
// is.
type realWatcher struct {
	*Watcher
	t       *testing.T
	dir     string
	changes chan []Change
	onLoop  bool // the test runs on the watcher's goroutine; see atOnce
}

// waitLimit ends a test whose condition never holds.
const waitLimit = time.Minute

func newRealWatcher(t *testing.T) *realWatcher {
	t.Parallel()
	d := &realWatcher{t: t, dir: t.TempDir(), changes: make(chan []Change)}
	d.Watcher = New(Options{Quiet: 30 * time.Millisecond, Limit: 300 * time.Millisecond, Poll: time.Hour, Warn: func(err error) { t.Error(err) }})
	go func() {
		defer close(d.changes)
		for c := range d.Changes(t.Context()) {
			d.changes <- c
		}
	}()
	t.Cleanup(func() {
		d.Close()
		for range d.changes {
		}
	})
	return d
}

func (d *realWatcher) path(name string) string { return filepath.Join(d.dir, name) }

// atOnce runs f on the watcher's goroutine, so that the watcher sees its changes all at once.
func (d *realWatcher) atOnce(f func()) {
	d.t.Helper()
	if d.onLoop {
		f()
		return
	}
	d.must(d.runOnLoop(func() {
		d.onLoop = true
		f()
		d.onLoop = false
	}))
}

func (d *realWatcher) must(err error) {
	d.t.Helper()
	switch {
	case err == nil:
	case d.onLoop: // Fatal would end the watcher's goroutine
		d.t.Error(err)
	default:
		d.t.Fatal(err)
	}
}

func (d *realWatcher) put(name, content string) {
	d.t.Helper()
	d.atOnce(func() { d.must(os.WriteFile(d.path(name), []byte(content), 0o644)) })
}

func (d *realWatcher) watchFiles(names ...string) {
	d.t.Helper()
	var t Targets
	for _, n := range names {
		t.Files = append(t.Files, d.path(n))
	}
	d.must(d.Set(t))
}

// awaitChanges waits for these reports, in words such as "created a".
func (d *realWatcher) awaitChanges(want ...string) {
	d.t.Helper()
	var got []string
	for timeout := time.After(waitLimit); len(got) < len(want); {
		select {
		case changes := <-d.changes:
			for _, c := range changes {
				name, err := filepath.Rel(d.dir, c.Path)
				d.must(err)
				got = append(got, fmt.Sprintf("%v %s", c.Kind, filepath.ToSlash(name)))
			}
		case <-timeout:
			d.t.Fatalf("told %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Fatalf("told %q, want %q", got, want)
	}
}

// expectNoOther checks that nothing else is reported: it changes the file name and expects its
// report next.
func (d *realWatcher) expectNoOther(name string) {
	d.t.Helper()
	d.put(name, time.Now().String())
	var changes []Change
	select {
	case changes = <-d.changes:
	case <-time.After(waitLimit):
	}
	if len(changes) != 1 || filepath.Base(changes[0].Path) != name {
		d.t.Fatalf("told %+v, want only %s", changes, name)
	}
}

func TestEditors(t *testing.T) {
	for name, save := range map[string]func(d *realWatcher, content string){
		"in place": func(d *realWatcher, content string) { d.put("a", content) },
		"rename over it": func(d *realWatcher, content string) {
			d.put("a.tmp", content)
			d.must(os.Rename(d.path("a.tmp"), d.path("a")))
		},
		"vim": func(d *realWatcher, content string) {
			d.put("4913", "")
			d.must(os.Remove(d.path("4913")))
			d.must(os.Rename(d.path("a"), d.path("a~")))
			d.put("a", content)
			d.must(os.Remove(d.path("a~")))
		},
		"remove and write": func(d *realWatcher, content string) {
			d.must(os.Remove(d.path("a")))
			d.put("a", content)
		},
		"atomicfile": func(d *realWatcher, content string) {
			_, err := atomicfile.Update(d.path("a"), func([]byte, bool) ([]byte, error) { return []byte(content), nil }, atomicfile.Options{Backup: true})
			d.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRealWatcher(t)
			d.put("a", "0")
			d.watchFiles("a", "fence")
			for i := range 3 {
				d.atOnce(func() { save(d, fmt.Sprint("content ", i)) })
				d.awaitChanges("modified a")
			}
			d.atOnce(func() { save(d, "content 2") })
			d.expectNoOther("fence")
		})
	}
}

func TestLinks(t *testing.T) {
	d := newRealWatcher(t)
	for _, folder := range []string{"v1", "v2", "links"} {
		d.must(os.Mkdir(d.path(folder), 0o755))
		d.put(folder+"/a", "in "+folder)
	}
	d.must(os.Symlink("v1", d.path("current")))
	d.must(os.Symlink("../current/a", d.path("links/a2")))
	d.must(os.Symlink(d.path("links/a2"), d.path("a")))
	d.watchFiles("a", "fence")
	d.put("v1/a", "new")
	d.awaitChanges("modified a")
	d.must(os.Symlink("v2", d.path("next")))
	d.must(os.Rename(d.path("next"), d.path("current"))) // as Kubernetes does
	d.awaitChanges("modified a")
	d.put("v2/a", "newer")
	d.awaitChanges("modified a")
	d.put("v1/a", "not watched")
	d.expectNoOther("fence")
	d.must(os.Remove(d.path("links/a2")))
	d.awaitChanges("removed a")
	d.put("links/a2", "a file")
	d.awaitChanges("created a")
	if err := d.Expect(d.path("links/a2"), atomicfile.Hash([]byte("own"))); err != nil {
		t.Fatal(err)
	}
	d.put("links/a2", "own")
	d.expectNoOther("fence")
	d.must(os.Symlink("circle", d.path("circle")))
	d.watchFiles("circle", "fence")
	d.atOnce(func() {
		d.must(os.Remove(d.path("circle")))
		d.put("circle", "broken up")
	})
	d.awaitChanges("modified circle") // it could not be read before
}

func TestFoldersComeAndGo(t *testing.T) {
	d := newRealWatcher(t)
	d.watchFiles("x/y/z/a", "fence")
	for range 2 {
		d.must(os.MkdirAll(d.path("x/y"), 0o755))
		d.expectNoOther("fence")
		d.must(os.Mkdir(d.path("x/y/z"), 0o755))
		d.put("x/y/z/a", "1")
		d.awaitChanges("created x/y/z/a")
		d.put("x/y/z/a", "2")
		d.awaitChanges("modified x/y/z/a")
		d.must(os.Rename(d.path("x/y/z"), d.path("x/y/away")))
		d.awaitChanges("removed x/y/z/a")
		d.must(os.Rename(d.path("x/y/away"), d.path("x/y/z")))
		d.awaitChanges("created x/y/z/a")
		d.must(os.RemoveAll(d.path("x")))
		d.awaitChanges("removed x/y/z/a")
	}
	d.put("x", "a file where a folder was")
	d.expectNoOther("fence")
	d.must(os.Remove(d.path("x")))
	d.must(os.MkdirAll(d.path("x/y/z/a"), 0o755)) // a folder in place of the file
	d.expectNoOther("fence")
}

// TestStorm rewrites a file a hundred times in halves. The last content must be reported.
func TestStorm(t *testing.T) {
	d := newRealWatcher(t)
	d.watchFiles("a")
	content := func(n int) string { return strings.Repeat(fmt.Sprint(n, " "), 1000) }
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for n := range 100 {
			text := content(n)
			f, err := os.Create(d.path("a"))
			if err != nil {
				t.Error(err)
				return
			}
			for len(text) > 0 {
				k := (len(text) + 1) / 2
				f.WriteString(text[:k])
				text = text[k:]
			}
			f.Close()
		}
	}()
	last := ""
	for timeout := time.After(waitLimit); last != atomicfile.Hash([]byte(content(99))); {
		select {
		case changes := <-d.changes:
			last = changes[0].Hash
		case <-timeout:
			t.Fatal("the final content was not reported")
		}
	}
	<-finished
}

func TestGlobs(t *testing.T) {
	d := newRealWatcher(t)
	for _, folder := range []string{"src/deep/er", "src/node_modules/x", "lib[1]", "named"} {
		d.must(os.MkdirAll(d.path(folder), 0o755))
	}
	d.put("src/a.go", "1")
	d.must(os.Symlink("named", d.path("link")))
	fence := d.path("fence")
	globs := func(patterns ...string) {
		t.Helper()
		target := Targets{Files: []string{fence}}
		for _, p := range patterns {
			target.Globs = append(target.Globs, d.path(p))
		}
		d.must(d.Set(target))
	}
	globs("src/**/*.go", "lib[1]", "link", "later/*/conf", "src/deep")
	d.put("src/a.go", "2")
	d.awaitChanges("modified src/a.go")
	d.put("src/a.txt", "not watched")
	d.put("src/node_modules/x/a.go", "not watched")
	d.put("named/in link", "1")
	d.awaitChanges("created link/in link")
	d.put("lib[1]/x", "1")
	d.put("src/deep/er/b.go", "1")
	d.awaitChanges("created lib[1]/x", "created src/deep/er/b.go")
	d.must(os.MkdirAll(d.path("later/x/conf/d"), 0o755)) // a folder that matches stands for all files below
	d.put("later/x/conf/d/f", "1")
	d.put("later/x/other", "1")
	d.awaitChanges("created later/x/conf/d/f")
	d.must(os.MkdirAll(d.path("src/new/er"), 0o755))
	d.put("src/new/er/c.go", "1")
	d.awaitChanges("created src/new/er/c.go")
	d.must(os.Rename(d.path("src/new"), d.path("src/newer")))
	d.awaitChanges("created src/newer/er/c.go", "removed src/new/er/c.go")
	d.must(os.Remove(d.path("link"))) // and with it all files below
	d.awaitChanges("removed link/in link")
	d.expectNoOther("fence")

	globs("src/**/*.go", "named") // one glob stays, the other is new
	d.put("named/more", "1")
	d.awaitChanges("created named/more")
	d.put("src/deep/er/b.txt", "no longer watched")
	d.expectNoOther("fence")
	if err := d.Set(Targets{Globs: []string{"["}}); err == nil {
		t.Error("an invalid pattern is accepted")
	}
}

func TestWhichTargets(t *testing.T) {
	d := newRealWatcher(t)
	d.must(os.MkdirAll(d.path("node_modules/x"), 0o755))
	all, js, file := d.path("**"), d.path("*/x/*.js"), d.path("a.js")
	named := d.path("*") + string(filepath.Separator) + filepath.Join("node_modules", "*.js") // below a folder that is not there
	d.must(d.Set(Targets{Files: []string{file}, Globs: []string{all, js, named, d.path("node_modules")}}))
	d.put("a.js", "1")
	d.put("node_modules/x/b.js", "1")
	got := map[string]Change{}
	for timeout := time.After(waitLimit); len(got) < 2; {
		select {
		case changes := <-d.changes:
			for _, c := range changes {
				got[filepath.Base(c.Path)] = c
			}
		case <-timeout:
			t.Fatalf("told %v", got)
		}
	}
	if c := got["a.js"]; !c.File || !slices.Equal(c.Globs, []string{all}) {
		t.Errorf("%+v", c)
	}
	if c := got["b.js"]; c.File || !slices.Equal(c.Globs, []string{d.path("node_modules")}) {
		t.Errorf("%+v", c)
	}
}

func TestBigFilesOfGlobs(t *testing.T) {
	d := newRealWatcher(t)
	d.must(d.Set(Targets{Globs: []string{d.dir}}))
	d.put("big", strings.Repeat("x", maxHashed+1))
	d.awaitChanges("created big")
	d.put("big", strings.Repeat("x", maxHashed+2))
	select {
	case c := <-d.changes:
		if c[0].Kind != Modified || c[0].Hash != "" {
			t.Errorf("%+v", c)
		}
	case <-time.After(waitLimit):
		t.Error("not told")
	}
}

func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return // root may read all files; TestLinks has a file that is unreadable for everyone
	}
	d := newRealWatcher(t)
	d.put("a", "1")
	d.watchFiles("a")
	d.must(os.Chmod(d.path("a"), 0))
	d.awaitChanges("modified a")
	d.must(os.Chmod(d.path("a"), 0o600))
	d.awaitChanges("modified a")
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want, leads   bool
	}{
		{"*.go", "a.go", true, true},
		{"*.go", "b/a.go", false, false},
		{"*.go", "b.go/a", true, true}, // below a folder that matches
		{"**", "a/b", true, true},
		{"**/*.go", "a.go", true, true},
		{"**/*.go", "x/y/a.go", true, true},
		{"**/*.go", "x/y", false, true},
		{"a/**/b", "a/b", true, true},
		{"a/**/b", "a/x/b/y", true, true},
		{"a/**/b", "x", false, false},
		{"a/?", "a", false, true},
	} {
		g := glob{rest: strings.Split(tt.pattern, "/")}
		names := strings.Split(tt.name, "/")
		if got, leads := g.matchesPath(names), g.mayMatchBelow(names); got != tt.want || leads != tt.leads {
			t.Errorf("%s and %s: matches %v, leads %v", tt.pattern, tt.name, got, leads)
		}
	}
}

func TestKinds(t *testing.T) {
	if got := fmt.Sprint(Created, Modified, Removed, Kind(7)); got != "created modified removed Kind(7)" {
		t.Error(got)
	}
}

func TestLimits(t *testing.T) {
	d := newRealWatcher(t)
	var warned []string
	w := newWatcher(Options{Warn: func(err error) { warned = append(warned, err.Error()) }}, silentSource())
	g, err := compileTargets(Targets{Globs: []string{d.dir}})
	d.must(err)
	w.targets = g
	d.put("a", "1")
	s := w.newScan()
	s.folderCount = maxFolders
	real, err := filepath.EvalSymlinks(d.dir)
	d.must(err)
	s.points = newWatchPoints()
	s.addTree(g.globs[0], d.dir, real, nil)
	if len(s.points.folders) != 0 || len(s.files) != 1 {
		t.Errorf("folders %v", s.points.folders)
	}
	for i := range maxFiles {
		s.files[fmt.Sprint(i)] = fileState{}
	}
	s.addGlobFile(d.path("b"))
	if len(warned) != 2 || !strings.Contains(warned[0], "folders") || !strings.Contains(warned[1], "files") {
		t.Errorf("%q", warned)
	}
}
